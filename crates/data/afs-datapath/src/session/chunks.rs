//! What a drive serves to a file server, and to clients that it sends: the chunks of its stores.

use std::net::SocketAddr;

use afs_env::BoxFuture;

use super::{Opened, Taken};
use crate::capability::{KeyEpoch, Secret, StagingTag, StoreNumber};
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

    /// Keeps the key of the next epoch, durably. Once it is kept, the drive has it; it is called for one key at a time. As for
    /// [`Chunks::perform`], the future is not dropped.
    ///
    /// # Errors
    /// [`Failure::Invalid`] by a drive that keeps the key it has, [`Failure::Io`] if it could not be kept: it may be all the same,
    /// at the next start.
    fn adopt(&self, _epoch: KeyEpoch, _key: Secret) -> BoxFuture<'static, Result<(), Failure>> {
        Box::pin(std::future::ready(Err(Failure::Invalid)))
    }
}

/// A request for chunks that a capability permits.
#[derive(Clone, Debug)]
pub struct ChunkCall {
    /// The client's address.
    pub peer: SocketAddr,
    /// Epoch of the key by which it was permitted.
    pub epoch: KeyEpoch,
    /// The store.
    pub store: StoreNumber,
    /// The room in which a client stages chunks; `None` for a request of the file server, and for reads.
    pub room: Option<Room>,
    /// What is to be done.
    pub what: ChunkRequest,
}

/// A room that a capability gives to a client.
#[derive(Clone, Debug)]
pub struct Room {
    /// The tag under which its chunks are staged.
    pub tag: StagingTag,
    /// Bytes that may be staged there together.
    pub bytes: u64,
}
