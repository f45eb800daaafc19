//! The overseer service (docs/protocol operations.md "2. bosserver"): queries of OpenAFS's tools and of
//! monitors about the servers of a host.
//!
//! There is one process and nothing to oversee: queries are answered, calls that start, stop, install or
//! change something are refused.

mod audit;
mod cell;
mod instances;
mod keys;
mod role;
mod unsupported;

use std::sync::Arc;

use afs_db::ProtectionDb;
use afs_rpc::{EnvRef, Service, Table};
use afs_wire::bos::Text;
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, UnixSeconds};
use afs_wire::rpc::ServiceId;

use crate::guard::{Guard, Guarded};
pub use keys::KeyKeeper;
pub use role::Role;

/// What the overseer reports of its host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overseen {
    /// The cell.
    pub cell: CellName,
    /// Its database servers, by name or address.
    pub hosts: Vec<String>,
    /// The roles of the process, in the order in which they are listed.
    pub roles: Vec<Role>,
    /// The command line of the process, without what must not be public. At most 256 bytes are shown.
    pub command: String,
}

/// The overseer service of a process.
pub struct BosServer {
    overseen: Overseen,
    db: Arc<dyn ProtectionDb>,
    guard: Guard,
    keys: Option<Arc<dyn KeyKeeper>>,
    started: UnixSeconds,
}

impl BosServer {
    /// A service for port 7007 ([`afs_rpc::Rx::listen_with`]), offered for as long as the process plays its
    /// roles. `db` knows the administrators of the cell; without `keys` the call for the keys of the host is unknown.
    ///
    /// Its service id is also that of the file service. Requirements on connections of the file service bind
    /// callers of this service only in queries for the administrators' names and in calls that are refused.
    pub fn service(
        env: &EnvRef,
        overseen: Overseen,
        db: Arc<dyn ProtectionDb>,
        guard: Guard,
        keys: Option<Arc<dyn KeyKeeper>>,
    ) -> Arc<dyn Service> {
        let started = UnixSeconds(env.wall().secs_u32());
        let server = Arc::new(BosServer { overseen, db, guard, keys, started });
        let table = Table::new(ServiceId::OVERSEER, server);
        let table = instances::add(table);
        let table = keys::add(cell::add(table));
        Arc::new(unsupported::add(table))
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
