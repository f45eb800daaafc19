//! Transfer by Rx calls, which every file server supports.
//!
//! Old servers do not know the calls with 64-bit lengths, and servers of other implementations take one range per call:
//! what a server has refused once is not tried again.

mod fetch;
mod ranges;
mod store;

use std::sync::atomic::Ordering;

use afs_rpc::{BoxFuture, CallError, ClientCall};
use afs_wire::error::AbortCode;
use afs_wire::fs::StatusReply;

use crate::calls::Target;
use crate::location::Server;
use crate::transfer::{Fetched, Sink, Source, StoreRequest, Transfer, TransferResult, Wanted};

/// The calls FetchData, FetchData64, StoreData, StoreData64 and StoreRanges.
pub(crate) struct Rpc;

impl Transfer for Rpc {
    fn fetch<'a>(
        &'a self,
        target: &'a Target,
        wanted: &'a Wanted,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<Fetched>> {
        Box::pin(fetch::fetch(target, wanted, sink))
    }

    fn store<'a>(
        &'a self,
        target: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>> {
        match (change.expected, change.pieces) {
            (Some(expected), _) => Box::pin(ranges::store(target, change, expected, source)),
            (None, [piece]) => Box::pin(store::store(target, change, piece, source)),
            (None, _) => Box::pin(async { Err(CallError::Misuse) }),
        }
    }

    fn takes_several_pieces(&self, server: &Server) -> bool {
        !server.single_ranges_only.load(Ordering::Relaxed)
    }
}

/// Aborts a call that was stopped locally, so that the server does not take what was sent for the whole. Says nothing
/// about the server.
fn give_up(call: ClientCall) -> CallError {
    call.abort(AbortCode::RX_USER_ABORT);
    CallError::GivenUp(AbortCode::VIO)
}

/// Error for a number that is too large for a server or for the protocol: EFBIG.
fn too_big() -> CallError {
    CallError::GivenUp(AbortCode(27))
}
