//! The volume location service (docs/protocol vldb.md): which servers hold which volumes, and where those are.
//!
//! Anybody may ask; only the owner of the cell may change.

mod addresses;
mod convert;
mod entries;
mod list;
mod locks;
mod statistics;
mod ubik;

use std::sync::Arc;

use afs_db::LocationDb;
use afs_rpc::{Caller, EnvRef, Identity, Service, Table};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::{Nothing, Opcode, Request, ServiceId};
use afs_wire::vl;

use statistics::Counters;
pub use ubik::VoteServer;

/// The location service over a location database.
pub struct LocationServer {
    env: EnvRef,
    db: Arc<dyn LocationDb>,
    started: UnixSeconds,
    counters: Counters,
}

impl LocationServer {
    /// A service over `db`, to be offered on port 7003 with [`afs_rpc::Rx::listen`].
    pub fn service(env: EnvRef, db: Arc<dyn LocationDb>) -> Arc<dyn Service> {
        let started = UnixSeconds(env.wall().secs_u32());
        let server = Arc::new(LocationServer { env, db, started, counters: Counters::default() });
        let table = Table::new(ServiceId::LOCATION, server)
            .call::<vl::ProbeServer, _, _, _>(probe)
            // kAFS asks this first, and takes the refusal, which is OpenAFS's answer too, as a sign of life.
            .refuse(Opcode(vl::GetCapabilities::OPCODE), AbortCode::RXGEN_OPCODE);
        let table = entries::add(table);
        let table = locks::add(table);
        let table = list::add(table);
        let table = addresses::add(table);
        Arc::new(statistics::add(table))
    }

    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    /// Counts a call, and what came of it.
    fn counted<T>(&self, opcode: u32, outcome: Result<T, AbortCode>) -> Result<T, AbortCode> {
        self.counters.count(opcode, outcome.is_ok());
        outcome
    }
}

/// Lets the owner of the cell pass.
fn owner_only(caller: &Caller) -> Result<(), AbortCode> {
    if is_owner(caller) { Ok(()) } else { Err(AbortCode::VL_PERM) }
}

fn is_owner(caller: &Caller) -> bool {
    matches!(caller.identity, Identity::Local)
}

fn code(error: afs_db::LocationError) -> AbortCode {
    if let afs_db::LocationError::Store(_) = error {
        tracing::error!(%error, "the location database cannot be used");
    }
    AbortCode(error.code())
}

async fn probe(server: Arc<LocationServer>, _: Caller, _: vl::ProbeServer) -> Result<Nothing, AbortCode> {
    server.counted(514, Ok(()))
}
