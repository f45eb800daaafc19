//! What a drive serves: files, as versions of bytes.

use std::net::SocketAddr;

use afs_env::BoxFuture;
use afs_wire::ids::{DataVersion, Fid};
use bytes::Bytes;

use super::{Chunks, Taken};
use crate::capability::{Access, ByteRange, Capability, Refusal, StreamName, TicketId};
use crate::frame::{Failure, StoreDescription};

/// The files of a drive. Its methods are called after everything was checked that a capability tells by itself: secret, epoch,
/// expiry, revocation, access, range, and that the fid may be in the group.
///
/// Two checks are left to it, which need the file's record: for a capability whose group has a
/// [`parent`](crate::capability::Group::parent), that the file is in that directory ([`Refusal::OtherObject`] otherwise); and, unless
/// its access has [`Access::ANY_MODE`], the file's mode bits ([`Refusal::NotAllowed`]).
///
/// [`Refusal::OtherObject`]: crate::capability::Refusal::OtherObject
/// [`Refusal::NotAllowed`]: crate::capability::Refusal::NotAllowed
/// [`Access::ANY_MODE`]: crate::capability::Access::ANY_MODE
pub trait Objects: Send + Sync + 'static {
    /// Opens the bytes of one version of a file.
    ///
    /// The future is a task of its own, first polled on the thread that received the request.
    ///
    /// # Errors
    /// [`Failure::OtherVersion`], [`Failure::NoObject`] and others; the client gets them as they are.
    fn read(&self, request: ReadRequest) -> BoxFuture<'static, Result<Opened, Failure>>;

    /// Takes the bytes of a store, makes them durable, and keeps them under a ticket of the capability's holder.
    ///
    /// The future is not dropped when the client gives up or is gone: [`Taken::next`] fails then. It counts against the limits of
    /// the drive until it ends.
    ///
    /// # Errors
    /// Any failure, at any time; what came of the bytes is dropped. Where [`Taken::next`] fails it fails with the same failure.
    fn store(&self, request: StoreRequest, bytes: Taken) -> BoxFuture<'static, Result<TicketId, Failure>>;

    /// Opens a stream of a volume that leaves the drive. An empty piece is its end. A drive without streams has none.
    ///
    /// The capability is checked once more by who gave it: whether it is for a stream that waits for its client. From here on it
    /// neither expires nor is revoked; the stream ends when its source does.
    ///
    /// # Errors
    /// [`Refusal::Revoked`](crate::capability::Refusal::Revoked) for a stream that has begun or ended, and others.
    fn open_stream(&self, _request: StreamRequest) -> BoxFuture<'static, Result<Box<dyn Pieces>, Failure>> {
        Box::pin(std::future::ready(Err(Failure::NoObject)))
    }

    /// Takes a stream of a volume to its end. As [`Objects::open_stream`]; the future is not dropped when the client is gone.
    ///
    /// # Errors
    /// As [`Objects::open_stream`]. Where [`Taken::next`] fails it fails with the same failure.
    fn take_stream(&self, _request: StreamRequest, _bytes: Taken) -> BoxFuture<'static, Result<(), Failure>> {
        Box::pin(std::future::ready(Err(Failure::NoObject)))
    }

    /// The chunks of a drive that serves them to a file server; `None` for others, which do not speak that version of the
    /// protocol.
    fn chunks(&self) -> Option<&dyn Chunks> {
        None
    }

    /// A read or store of a file was refused, by the drive or by these objects: for who keeps a record of it. Called once for each,
    /// in the task that serves the connection or the request; must not block.
    fn refused(&self, _request: &RefusedRequest) {}
}

/// A read or store that was refused.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRequest {
    /// The client's address.
    pub peer: SocketAddr,
    /// The capability; `None` if it was refused when it was presented: then nothing of what it says is proved.
    pub capability: Option<Capability>,
    /// The file.
    pub fid: Fid,
    /// [`Access::READ`] or [`Access::WRITE`].
    pub access: Access,
    /// Why.
    pub refusal: Refusal,
}

/// A stream that a capability permits.
#[derive(Clone, Copy, Debug)]
pub struct StreamRequest {
    /// The client's address.
    pub peer: SocketAddr,
    /// The capability, with its holder.
    pub capability: Capability,
    /// The stream, which is the capability's group.
    pub stream: StreamName,
}

/// A read that a capability permits.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// The client's address.
    pub peer: SocketAddr,
    /// The capability, with its holder.
    pub capability: Capability,
    /// The file.
    pub fid: Fid,
    /// The version that the client wants.
    pub version: DataVersion,
    /// The bytes that it wants; beyond the end of the file there are none.
    pub range: ByteRange,
}

/// A store that a capability permits.
#[derive(Clone, Debug)]
pub struct StoreRequest {
    /// The client's address.
    pub peer: SocketAddr,
    /// The capability, with its holder.
    pub capability: Capability,
    /// File and ranges.
    pub description: StoreDescription,
}

/// Bytes of one version of a file, to be sent.
pub struct Opened {
    /// Length of the file in that version.
    pub file_length: u64,
    /// Bytes that the pieces have together: those of the range that lie in the file.
    pub length: u64,
    /// The bytes.
    pub pieces: Box<dyn Pieces>,
}

/// A source of bytes, which are asked for one piece after another.
pub trait Pieces: Send {
    /// The next bytes: at least one, at most `most` ([`DATA_MAX`](crate::frame::DATA_MAX) where nothing limits it; the larger the
    /// pieces, the faster). Not called after the last byte. Of a stream of a volume: none at its end.
    ///
    /// # Errors
    /// [`Failure::Io`] and others.
    fn next(&mut self, most: usize) -> BoxFuture<'_, Result<Bytes, Failure>>;
}
