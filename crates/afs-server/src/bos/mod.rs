//! The overseer service (docs/protocol operations.md "2. bosserver"): what OpenAFS's tools and those who watch a cell
//! ask about the servers of a host.
//!
//! There is one process and nothing to oversee: what is asked is answered, and what would start, stop, install or
//! change something is refused.

mod audit;
mod cell;
mod instances;
mod refused;
mod role;

use std::sync::Arc;

use afs_db::ProtectionDb;
use afs_rpc::{EnvRef, Service, Table};
use afs_wire::bos::Text;
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, UnixSeconds};
use afs_wire::rpc::ServiceId;

use crate::guard::{Guard, Guarded};
pub use role::Role;

/// What an overseer tells of its host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overseen {
    /// The cell.
    pub cell: CellName,
    /// Its database servers, by name or address.
    pub hosts: Vec<String>,
    /// What the process does, in the order in which it is listed.
    pub roles: Vec<Role>,
    /// The command that the process was started with, as far as everybody may read it. At most 256 bytes are shown.
    pub command: String,
}

/// The overseer service of a process that plays some roles.
pub struct BosServer {
    overseen: Overseen,
    db: Arc<dyn ProtectionDb>,
    guard: Guard,
    started: UnixSeconds,
}

impl BosServer {
    /// A service to be offered on port 7007 with [`afs_rpc::Rx::listen_with`], from when the process plays its roles
    /// for as long as it does. `db` says who administers the cell.
    ///
    /// Its number is the file service's as well. What is required of callers there binds nobody here but those who ask
    /// for the administrators' names, or for something that is refused.
    pub fn service(
        env: &EnvRef,
        overseen: Overseen,
        db: Arc<dyn ProtectionDb>,
        guard: Guard,
    ) -> Arc<dyn Service> {
        let started = UnixSeconds(env.wall().secs_u32());
        let server = Arc::new(BosServer { overseen, db, guard, started });
        let table = Table::new(ServiceId::OVERSEER, server);
        let table = instances::add(table);
        let table = cell::add(table);
        Arc::new(refused::add(table))
    }
}

impl Guarded for BosServer {
    const SERVICE: ServiceId = ServiceId::OVERSEER;
    const REFUSAL: AbortCode = AbortCode::BZACCESS;

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

type Server = Arc<BosServer>;

fn text(of: &str) -> Text {
    Text::truncated(of.as_bytes())
}
