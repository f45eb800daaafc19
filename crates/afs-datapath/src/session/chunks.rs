//! What a drive serves to a file server: the chunks of its stores.

use std::net::SocketAddr;

use afs_env::BoxFuture;

use super::{Opened, Taken};
use crate::capability::StoreNumber;
use crate::frame::{ChunkReply, ChunkRequest, Failure};

/// The chunk stores of a drive. Its methods are called after the capability was checked; nothing else is to be permitted.
pub trait Chunks: Send + Sync + 'static {
    /// Does what a request without bytes in its reply asks for, with the bytes that follow it.
    ///
    /// The future is not dropped when the client gives up or is gone: [`Taken::next`] fails then. It counts against the limits of
    /// the drive until it ends.
    ///
    /// # Errors
    /// Any failure. Where [`Taken::next`] fails it fails with the same failure.
    fn perform(&self, call: ChunkCall, bytes: Taken) -> BoxFuture<'static, Result<ChunkReply, Failure>>;

    /// Opens the bytes that are the reply to a request.
    ///
    /// # Errors
    /// Any failure.
    fn open(&self, call: ChunkCall) -> BoxFuture<'static, Result<Opened, Failure>>;
}

/// A request for chunks that a capability permits.
#[derive(Clone, Debug)]
pub struct ChunkCall {
    /// The client's address.
    pub peer: SocketAddr,
    /// The store.
    pub store: StoreNumber,
    /// What is to be done.
    pub what: ChunkRequest,
}
