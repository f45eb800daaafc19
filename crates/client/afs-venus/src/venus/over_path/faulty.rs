//! Transfers that fail when a test says so: calls behind the data path, or all that goes through it.

use std::sync::Arc;

use afs_rpc::{BoxFuture, CallError};
use afs_wire::fs::StatusReply;
use parking_lot::Mutex;

use crate::calls::Target;
use crate::location::Server;
use crate::transfer::{Fetched, Sink, Source, StoreRequest, Transfer, TransferResult, Wanted};

/// What becomes of transfers.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// They are made.
    #[default]
    None,
    /// They are not made.
    NotMade,
    /// They are made, and their replies are lost.
    ReplyLost,
}

/// A fault that a test changes.
pub type SharedFault = Arc<Mutex<Fault>>;

/// Another transfer with faults.
pub struct Faulty<T> {
    pub inner: T,
    pub fault: SharedFault,
}

/// A transfer with a fault: any of them is reported as a reply that ended early.
async fn with<T>(fault: Fault, work: impl Future<Output = TransferResult<T>> + Send) -> TransferResult<T> {
    if fault == Fault::NotMade {
        return Err(CallError::Ended);
    }
    let done = work.await?;
    if fault == Fault::ReplyLost { Err(CallError::Ended) } else { Ok(done) }
}

impl<T: Transfer> Transfer for Faulty<T> {
    fn fetch<'a>(
        &'a self,
        target: &'a Target,
        wanted: &'a Wanted,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<Fetched>> {
        let fault = *self.fault.lock();
        Box::pin(with(fault, self.inner.fetch(target, wanted, sink)))
    }

    fn store<'a>(
        &'a self,
        target: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>> {
        let fault = *self.fault.lock();
        Box::pin(with(fault, self.inner.store(target, change, source)))
    }

    fn takes_several_pieces(&self, server: &Server) -> bool {
        self.inner.takes_several_pieces(server)
    }

    fn fetches_by_call(&self, server: &Arc<Server>, bytes: u64) -> bool {
        self.inner.fetches_by_call(server, bytes)
    }
}
