//! What stands before every service of a server: who a caller is, how well that must be proven, and what is written
//! down of it.

use std::sync::Arc;

use afs_rpc::{Caller, ServerCall, Table};
use afs_wire::error::AbortCode;
use afs_wire::rpc::{ServiceId, Streamed};

use crate::audit::{Audit, AuditObject, CallKind, Described};
use crate::policy::{Policy, SharedPolicy};
use crate::subject::{NameService, Subject};

/// Names, policy and audit log, shared by all services of a server. Cheap to clone.
#[derive(Clone)]
pub struct Guard {
    names: Arc<dyn NameService>,
    policy: SharedPolicy,
    audit: Audit,
}

/// Who may make a call of a service whose objects have no access lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Everybody.
    Probe,
    /// Whoever the service hears.
    Nothing,
    /// Administrators, whose connections are good enough for every volume.
    Administrator,
}

impl Guard {
    /// Nothing is required of connections and nothing is recorded.
    pub fn new(names: Arc<dyn NameService>) -> Self {
        Guard { names, policy: SharedPolicy::default(), audit: Audit::off() }
    }

    /// The same with requirements.
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

    /// Names and memberships.
    pub fn names(&self) -> &dyn NameService {
        &*self.names
    }

    /// The audit log.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The requirements of the moment.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.get()
    }

    /// Who calls. To be asked at every call.
    ///
    /// # Errors
    /// The code of the name service when it cannot tell.
    pub async fn subject(&self, caller: &Caller) -> Result<Subject, AbortCode> {
        self.names.subject(&caller.identity, caller.peer.ip()).await
    }

    /// Whether the caller has proven to be an administrator.
    ///
    /// # Errors
    /// As [`Guard::subject`].
    pub async fn is_administrator(&self, caller: &Caller) -> Result<bool, AbortCode> {
        Ok(self.subject(caller).await?.is_administrator())
    }

    /// Lets a caller pass, or says with which code he does not; `refusal` is the service's word for "not you".
    pub(crate) async fn admit(
        &self,
        caller: &Caller,
        service: ServiceId,
        need: Need,
        refusal: AbortCode,
    ) -> Result<(), AbortCode> {
        let (policy, identity) = (self.policy(), &caller.identity);
        let heard = policy.service_hears(service, identity);
        let allowed = match need {
            Need::Probe => true,
            Need::Nothing => heard,
            Need::Administrator => {
                heard && policy.all_volumes_are_open(identity) && self.is_administrator(caller).await?
            }
        };
        if allowed { Ok(()) } else { Err(refusal) }
    }

    /// What a call is about, if it may have to be recorded. To be asked before the call is carried out.
    pub(crate) fn object<R: Described>(&self, call: &R) -> AuditObject {
        if self.audit.is_on() { call.object() } else { AuditObject::Nothing }
    }

    /// Records the outcome of a call.
    pub(crate) fn note<R: Described>(&self, caller: &Caller, object: AuditObject, code: AbortCode) {
        self.audit.record(caller, R::NAME, R::KIND, object, code);
    }
}

/// A service with a guard before it.
pub(crate) trait Guarded: Send + Sync + 'static {
    /// Its number.
    const SERVICE: ServiceId;
    /// What it answers those who may not.
    const REFUSAL: AbortCode;

    /// The guard.
    fn guard(&self) -> &Guard;

    /// Told of every call that has ended.
    fn count(&self, _opcode: u32, _good: bool) {}
}

/// Answers `R` with `operation` to whoever meets the need, and records what came of it.
pub(crate) fn row<S, R, F>(
    table: Table<S>,
    need: Need,
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
            let admitted = guard.admit(&caller, S::SERVICE, need, S::REFUSAL).await;
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

/// As [`row`], for everybody.
pub(crate) fn anyone<S, R, F>(
    table: Table<S>,
    operation: impl Fn(Arc<S>, R) -> F + Send + Sync + 'static,
) -> Table<S>
where
    S: Guarded,
    R: Described,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    let need = if R::KIND == CallKind::Probe { Need::Probe } else { Need::Nothing };
    row(table, need, move |server, _, request| operation(server, request))
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
    row(table, Need::Administrator, move |server, _, request| operation(server, request))
}

/// Answers the split call `R` with `operation`, which moves its bytes, for administrators, and records what came of it.
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
            let admitted = guard.admit(&caller, S::SERVICE, Need::Administrator, S::REFUSAL).await;
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
