//! Audit log: every change and every refusal, for the administrators of a cell.
//!
//! No call waits for its record. Records enter a bounded queue, which one task empties into an [`AuditSink`] between two
//! commits of changes, or on a thread for blocking work. Records that the queue cannot take are counted, and the count is recorded in
//! their place.

mod calls;
mod json;
mod log;
mod record;

pub use record::{AuditName, AuditObject, AuditRecord, AuditedCall, CallKind};

pub(crate) use calls::{Described, described};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::{Caller, EnvRef, Identity};
use afs_wire::error::{AbortCode, Errno};
use log::Log;

/// The destination of audit records.
pub trait AuditSink: Send + Sync + 'static {
    /// Writes records, at most 513. May block as a small write to a local file does ([`Stall::Brief`](afs_rpc::Stall)); called by
    /// one task at a time, in the order in which the calls ended.
    ///
    /// # Errors
    /// The records are lost; the loss is recorded when the sink works again.
    fn write(&self, records: &[AuditRecord]) -> io::Result<()>;
}

/// Which calls are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuditOptions {
    /// Whether every call is recorded, not only changes and refusals. Default: no.
    pub everything: bool,
    /// Records that may wait for the sink, each at most about a kilobyte. Default 8192, at least 1.
    pub queue: usize,
}

impl Default for AuditOptions {
    fn default() -> Self {
        AuditOptions { everything: false, queue: 8192 }
    }
}

/// A handle on the audit log, for every service. Cheap to clone.
#[derive(Clone, Default)]
pub struct Audit(Option<Arc<Log>>);

impl Audit {
    /// A log that records nothing.
    pub fn off() -> Self {
        Audit(None)
    }

    /// A log into `sink`, written by a task in `env` that ends when the last handle is dropped.
    pub fn new(env: EnvRef, sink: Arc<dyn AuditSink>, options: AuditOptions) -> Self {
        Audit(Some(Log::start(env, sink, options)))
    }

    /// Records the end of a call, if calls of this kind with this outcome are recorded. `call` is its name in
    /// the protocol's documents.
    pub fn record(
        &self,
        caller: &Caller,
        call: &'static str,
        kind: CallKind,
        object: AuditObject,
        code: AbortCode,
    ) {
        self.record_of((&caller.identity, caller.peer), call, kind, object, code);
    }

    /// The same for who is known without a call.
    pub(crate) fn record_of(
        &self,
        (identity, peer): (&Identity, SocketAddr),
        call: &'static str,
        kind: CallKind,
        object: AuditObject,
        code: AbortCode,
    ) {
        if let Some(log) = self.0.as_ref().filter(|log| log.wants(kind, code)) {
            let (time, identity) = (log.now(), identity.clone());
            log.push(AuditedCall { time, identity, peer, call, object, code });
        }
    }

    /// Whether what is read without an error is recorded.
    pub(crate) fn has_reads(&self) -> bool {
        self.0.as_ref().is_some_and(|log| log.wants(CallKind::Read, AbortCode::OK))
    }

    /// Ready when everything recorded so far has reached the sink, or been lost.
    pub async fn flush(&self) {
        if let Some(log) = &self.0 {
            log.flush().await;
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

/// Whether a code means that the caller lacked permission, as opposed to any other failure.
fn is_refusal(code: AbortCode) -> bool {
    let errno = code.to_errno();
    [Errno::EACCES, Errno::EPERM].iter().any(|refused| errno == Some(refused.number()))
        || code == AbortCode::VICETOKENDEAD
}

#[cfg(test)]
mod tests;
