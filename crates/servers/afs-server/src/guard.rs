//! Guard in front of every service of a server: resolves the caller's identity, checks the requirements on
//! its connection, and writes the audit log.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::{Caller, Identity, ServerCall, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::{ServiceId, Streamed};

use crate::audit::{Audit, AuditObject, CallKind, Described};
use crate::policy::{Policy, SharedPolicy};
use crate::subject::{NameService, Subject};

/// Name service, policy and audit log, shared by all services of a server. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    names: Arc<dyn NameService>,
    policy: SharedPolicy,
    audit: Audit,
}

/// Requirement for calls of a service whose objects have no access lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Required {
    /// Nothing at all.
    Nothing,
    /// Any caller, over a connection that meets the service's requirement.
    AnyConnection,
    /// An administrator, whose connection meets the requirements of every volume.
    Administrator,
}

impl Guard {
    /// A guard that requires nothing of connections and records nothing.
    pub fn new(names: Arc<dyn NameService>) -> Self {
        Guard { names, policy: SharedPolicy::default(), audit: Audit::off() }
    }

    /// The same with a policy.
    #[must_use]
    pub fn with_policy(mut self, policy: SharedPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// The same with an audit log.
    #[must_use]
    pub fn with_audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// The name service.
    pub fn names(&self) -> &dyn NameService {
        &*self.names
    }

    /// The name service, to be kept.
    pub(crate) fn shared_names(&self) -> Arc<dyn NameService> {
        self.names.clone()
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The current policy.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.get()
    }

    /// The subject that calls. Must be resolved anew for every call.
    ///
    /// # Errors
    /// The code of the name service when it cannot tell.
    pub async fn subject(&self, caller: &Caller) -> Result<Subject, AbortCode> {
        self.names.subject(&caller.identity, caller.peer.ip()).await
    }

    /// Whether the caller has authenticated as an administrator.
    ///
    /// # Errors
    /// As [`Guard::subject`].
    pub async fn is_administrator(&self, caller: &Caller) -> Result<bool, AbortCode> {
        Ok(self.subject(caller).await?.is_administrator())
    }

    /// Admits a caller or returns the code of the refusal; `refusal` is the service's code for a missing
    /// permission.
    pub(crate) async fn admit(
        &self,
        caller: &Caller,
        service: ServiceId,
        required: Required,
        refusal: AbortCode,
    ) -> Result<(), AbortCode> {
        let (policy, identity) = (self.policy(), &caller.identity);
        let heard = policy.service_hears(service, identity);
        let allowed = match required {
            Required::Nothing => true,
            Required::AnyConnection => heard,
            Required::Administrator => {
                heard && policy.all_volumes_are_open(identity) && self.is_administrator(caller).await?
            }
        };
        if allowed { Ok(()) } else { Err(refusal) }
    }

    /// The object of a call, if the call may have to be recorded. Must precede the execution of the call.
    pub(crate) fn object<R: Described>(&self, call: &R) -> AuditObject {
        if self.audit.is_on() { call.object() } else { AuditObject::Nothing }
    }

    /// Records the outcome of a call.
    pub(crate) fn note<R: Described>(&self, caller: &Caller, object: AuditObject, code: AbortCode) {
        self.audit.record(caller, R::NAME, R::KIND, object, code);
    }

    /// Whether there is an audit log.
    pub(crate) fn records(&self) -> bool {
        self.audit.is_on()
    }

    /// Records the outcome of a change that was made as part of another call.
    pub(crate) fn note_change(
        &self,
        who: (&Identity, SocketAddr),
        (name, object): (&'static str, AuditObject),
        code: AbortCode,
    ) {
        self.audit.record_of(who, name, CallKind::Change, object, code);
    }
}

/// A service behind a guard.
pub(crate) trait Guarded: Send + Sync + 'static {
    /// Its service id.
    const SERVICE: ServiceId;
    /// Its code for a missing permission.
    const REFUSAL: AbortCode;

    /// The guard.
    fn guard(&self) -> &Guard;

    /// Counts a call that has ended.
    fn count(&self, _opcode: u32, _good: bool) {}
}

/// Registers `operation` for `R`, for callers that meet the requirement, and records the outcome.
pub(crate) fn row<S, R, F>(
    table: Table<S>,
    required: Required,
    operation: impl Fn(Arc<S>, Caller, R) -> F + Send + Sync + 'static,
) -> Table<S>
where
    S: Guarded,
    R: Described,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    let operation = Arc::new(operation);
    table.call::<R, _, _, AbortCode>(move |server: Arc<S>, caller, request| {
        let operation = operation.clone();
        async move {
            let guard = server.guard();
            let object = guard.object(&request);
            let admitted = guard.admit(&caller, S::SERVICE, required, S::REFUSAL).await;
            let outcome = match admitted {
                Ok(()) => operation(server.clone(), caller.clone(), request).await,
                Err(code) => Err(code),
            };
            let code = outcome.as_ref().err().copied().unwrap_or(AbortCode::OK);
            guard.note::<R>(&caller, object, code);
            server.count(R::OPCODE, outcome.is_ok());
            outcome
        }
    })
}

/// As [`row`], for every caller.
pub(crate) fn anyone<S, R, F>(
    table: Table<S>,
    operation: impl Fn(Arc<S>, R) -> F + Send + Sync + 'static,
) -> Table<S>
where
    S: Guarded,
    R: Described,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    let required = if R::KIND == CallKind::Probe { Required::Nothing } else { Required::AnyConnection };
    row(table, required, move |server, _, request| operation(server, request))
}

/// As [`row`], for administrators.
pub(crate) fn administrators<S, R, F>(
    table: Table<S>,
    operation: impl Fn(Arc<S>, R) -> F + Send + Sync + 'static,
) -> Table<S>
where
    S: Guarded,
    R: Described,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    row(table, Required::Administrator, move |server, _, request| operation(server, request))
}

/// Registers `operation` for the split call `R`, whose bytes it moves, for administrators, and records the
/// outcome.
pub(crate) fn administrators_streamed<S, R, F>(
    table: Table<S>,
    operation: impl Fn(Arc<S>, ServerCall, R) -> F + Send + Sync + 'static,
) -> Table<S>
where
    S: Guarded,
    R: Described + Streamed,
    F: Future<Output = Result<(), (ServerCall, AbortCode)>> + Send + 'static,
{
    let operation = Arc::new(operation);
    table.streamed::<R, _, _>(move |server: Arc<S>, call: ServerCall, request| {
        let operation = operation.clone();
        async move {
            let (guard, caller) = (server.guard(), call.caller().clone());
            let object = guard.object(&request);
            let admitted = guard.admit(&caller, S::SERVICE, Required::Administrator, S::REFUSAL).await;
            let outcome = match admitted {
                Ok(()) => operation(server.clone(), call, request).await,
                Err(code) => Err((call, code)),
            };
            let code = match outcome {
                Ok(()) => AbortCode::OK,
                Err((call, code)) => {
                    call.abort(code);
                    code
                }
            };
            guard.note::<R>(&caller, object, code);
            server.count(R::OPCODE, code == AbortCode::OK);
        }
    })
}
