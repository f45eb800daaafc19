//! Audit log: every change and every refusal, for the administrators of a cell.
//!
//! No call waits for its record. Records enter a bounded queue, which one task empties into an [`AuditSink`] between two
//! commits of changes, or on a thread for blocking work. Records that the queue cannot take are counted, and the count is recorded in
//! their place.
//!
//! Of the refusals of one caller and call the first in a window are recorded, the others counted. The parts of the log do not displace one
//! another: only changes fill more than half of the queue, and a sink has a file for each part.

mod calls;
mod json;
mod log;
mod record;
mod refusals;

pub use record::{
    AuditName, AuditObject, AuditPart, AuditRecord, AuditedCall, CallKind, CountedCalls, Refused,
};

pub(crate) use calls::{Described, described};

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::{Caller, EnvRef, Identity};
use afs_wire::error::AbortCode;
use log::Log;

/// The destination of audit records.
pub trait AuditSink: Send + Sync + 'static {
    /// Writes records, about 2,000 at most. May block as a small write to a local file does ([`Stall::Brief`](afs_rpc::Stall)); called by
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
    /// Records that may wait for the sink, each at most about a kilobyte; half of them, if they are not of changes that were made.
    /// Default 8192, at least 2.
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
    pub fn record_of(
        &self,
        (identity, peer): (&Identity, SocketAddr),
        call: &'static str,
        kind: CallKind,
        object: AuditObject,
        code: AbortCode,
    ) {
        let part = AuditPart::of(kind, identity, code);
        if let Some(log) = self.0.as_ref().filter(|log| log.wants(part)) {
            let (time, identity) = (log.now(), identity.clone());
            log.record(AuditedCall { time, identity, peer, call, kind, object, code });
        }
    }

    /// Whether what is read without an error is recorded.
    pub(crate) fn has_reads(&self) -> bool {
        self.0.as_ref().is_some_and(|log| log.wants(AuditPart::Reads))
    }

    /// Ready when everything recorded and counted so far has reached the sink, or been lost. Needed before the end of the process.
    pub async fn flush(&self) {
        if let Some(log) = &self.0 {
            log.flush().await;
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests;
