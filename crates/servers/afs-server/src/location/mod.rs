//! The volume location service (docs/protocol vldb.md): the sites of volumes, and the addresses of servers.
//!
//! Every caller may read; only administrators may change entries.

mod addresses;
mod convert;
mod entries;
mod list;
mod locks;
mod statistics;
mod ubik;

use std::sync::Arc;

use afs_db::LocationDb;
use afs_rpc::{EnvRef, Service, Table};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::{Opcode, Request, ServiceId};
use afs_wire::vl;

use crate::guard::{Guard, Guarded, anyone};
use statistics::Counters;
pub use ubik::{HasQuorum, VoteServer};

/// The location service over a location database.
pub struct LocationServer {
    env: EnvRef,
    db: Arc<dyn LocationDb>,
    guard: Guard,
    started: UnixSeconds,
    counters: Counters,
}

impl LocationServer {
    /// A service over `db`, to be offered on port 7003 with [`afs_rpc::Rx::listen`].
    pub fn service(env: EnvRef, db: Arc<dyn LocationDb>, guard: Guard) -> Arc<dyn Service> {
        let started = UnixSeconds(env.wall().secs_u32());
        let server = Arc::new(LocationServer { env, db, guard, started, counters: Counters::default() });
        // kAFS asks for capabilities first, and takes the refusal, which is also OpenAFS's reply, as a sign
        // of life.
        let table = Table::new(ServiceId::LOCATION, server)
            .refuse(Opcode(vl::GetCapabilities::OPCODE), AbortCode::RXGEN_OPCODE);
        let table = anyone(table, |_: Arc<LocationServer>, _: vl::ProbeServer| async move { Ok(()) });
        let table = entries::add(table);
        let table = locks::add(table);
        let table = list::add(table);
        let table = addresses::add(table);
        Arc::new(statistics::add(table))
    }

    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }
}

impl Guarded for LocationServer {
    const SERVICE: ServiceId = ServiceId::LOCATION;
    const REFUSAL: AbortCode = AbortCode::VL_PERM;

    fn guard(&self) -> &Guard {
        &self.guard
    }

    fn count(&self, opcode: u32, good: bool) {
        self.counters.count(opcode, good);
    }
}

fn code(error: afs_db::LocationError) -> AbortCode {
    if let afs_db::LocationError::Store(_) = error {
        tracing::error!(%error, "the location database cannot be used");
    }
    AbortCode(error.code())
}
