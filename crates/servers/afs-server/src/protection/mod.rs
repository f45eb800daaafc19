//! The protection service (docs/protocol ptserver.md): users, groups and memberships.
//!
//! Permission is decided by the database, in the transaction that does the work; the service supplies the
//! caller's identity.

mod audit;
mod cache;
mod change;
mod convert;
mod create;
mod following;
mod names;
mod queries;
pub(crate) mod requester;
mod translate;

use std::sync::Arc;

use afs_db::ProtectionDb;
use afs_db::protection::{ProtectionError, Refusal, Requester};
use afs_rpc::{Caller, EnvRef, Identity, Service, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;

use crate::audit::Described;
use crate::guard::{Guard, Guarded, Required, row};
pub use names::ProtectionNames;

/// Options of a protection service.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProtectionOptions {
    /// Whether only administrators may change anything, their own groups included. Default: no.
    pub restricted: bool,
    /// Whether anonymous callers may only translate names. Default: no.
    pub restrict_anonymous: bool,
    /// Names of this cell and its realms, which `NameToID` strips from the end of a name, in upper or lower
    /// case. Default: none.
    pub local: Vec<String>,
}

/// The protection service over a protection database.
pub struct ProtectionServer {
    env: EnvRef,
    db: Arc<dyn ProtectionDb>,
    guard: Guard,
    options: ProtectionOptions,
}

impl ProtectionServer {
    /// A service over `db`, for port 7002 ([`afs_rpc::Rx::listen_with`]), with a
    /// [`VoteServer`](crate::VoteServer) beside it. Calls that read OpenAFS's own database file are unknown.
    pub fn service(
        env: EnvRef,
        db: Arc<dyn ProtectionDb>,
        guard: Guard,
        options: ProtectionOptions,
    ) -> Arc<dyn Service> {
        let table = Table::new(ServiceId::PROTECTION, Arc::new(ProtectionServer { env, db, guard, options }));
        let table = following::add(translate::add(table));
        let table = queries::add(table);
        let table = create::add(table);
        Arc::new(change::add(table))
    }

    fn requester(&self, caller: &Caller) -> Requester {
        Requester {
            identity: requester::requester_identity(&caller.identity),
            restricted: self.options.restricted,
        }
    }

    /// The caller of a query whose result depends on the caller.
    fn reader(&self, caller: &Caller) -> Result<Requester, AbortCode> {
        let anonymous = matches!(caller.identity, Identity::Anonymous);
        if anonymous && self.options.restrict_anonymous {
            return Err(AbortCode::PRPERM);
        }
        Ok(self.requester(caller))
    }

    /// Admits callers that the database knows.
    async fn identified(&self, caller: &Caller) -> Result<(), AbortCode> {
        self.db.identify(self.reader(caller)?).await.map(drop).map_err(code)
    }
}

impl Guarded for ProtectionServer {
    const SERVICE: ServiceId = ServiceId::PROTECTION;
    const REFUSAL: AbortCode = AbortCode::PRPERM;

    fn guard(&self) -> &Guard {
        &self.guard
    }
}

type Server = Arc<ProtectionServer>;

/// Registers `operation` for `R`. The operation itself checks permission.
fn call<R, F>(
    table: Table<ProtectionServer>,
    operation: impl Fn(Server, Caller, R) -> F + Send + Sync + 'static,
) -> Table<ProtectionServer>
where
    R: Described,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    row(table, Required::AnyConnection, move |server, caller: Caller, request| {
        let (identity, pending) = (caller.identity.clone(), operation(server, caller, request));
        async move { pending.await.map_err(|code| names::as_known_to(&identity, code)) }
    })
}

fn code(error: ProtectionError) -> AbortCode {
    if matches!(error, ProtectionError::Store(_) | ProtectionError::Refused(Refusal::Damaged)) {
        tracing::error!(%error, "the protection database cannot be used");
    }
    error.code()
}
