//! Transfer of file data between a server and this machine, independent of the route.
//!
//! A [`Transfer`] is one attempt at one target. It knows calls and streams but no cache files: it fetches into a
//! [`Sink`] and stores from a [`Source`]. Both hold at most one piece in memory, and each waits for the other. Fetched
//! bytes count only after the transfer's reply, and so do stored ones: a transfer that ends early may be repeated by
//! the same route or another. So one route can be tried before another and leave to it what it could not do.

mod cache_sink;
mod cache_source;
mod fetched;
mod hole_detector;
mod memory_sink;
mod path;
mod rpc;

pub(crate) use cache_sink::{CacheSink, Received, SinkReport};
pub(crate) use cache_source::{CacheSource, SourceFailure, SourceReport};
pub(crate) use fetched::{Fetched, Wanted, directory_of};
pub(crate) use memory_sink::MemorySink;
pub(crate) use path::OverPath;
pub(crate) use rpc::Rpc;

use std::sync::Arc;

use afs_rpc::{BoxFuture, CallError, Instant};
use afs_wire::fs::{self, CapabilityOutcome, SetStatus, StatusReply};
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::rpc::Request;
use bytes::Bytes;

use crate::api::ExplainedDrive;
use crate::cache::CacheIo;
use crate::calls::Target;
use crate::data::Piece;
use crate::error::Result;
use crate::identity::TokenId;
use crate::location::Server;

/// Name of a fetch in counters and errors.
pub(crate) const FETCH: &str = fs::FetchData64::NAME;
/// Most bytes of a piece in transit between the cache and the route.
pub(crate) const PIECE: u64 = 256 << 10;
/// Most pieces of a [`StoreRequest`].
pub(crate) const PIECES_MAX: usize = fs::STORE_RANGES_MAX;

/// Result of a transfer.
pub(crate) type TransferResult<T> = std::result::Result<T, CallError>;

/// The local sink or source has stopped the transfer, for a reason that it has recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stopped;

/// A route for data between this machine and servers.
pub(crate) trait Transfer: Send + Sync + 'static {
    /// Fetches a range of a file into a sink: from its start, without gaps, fewer bytes if the file ends before.
    ///
    /// Without a version that is held the outcome is that of a call.
    ///
    /// # Errors
    /// The reason why not all bytes came; [`CallError::GivenUp`] if the sink stopped.
    fn fetch<'a>(
        &'a self,
        target: &'a Target,
        wanted: &'a Wanted,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<Fetched>>;

    /// Stores the bytes of a source in a file. The change is atomic.
    ///
    /// # Errors
    /// The reason why there is no reply; [`CallError::GivenUp`] if the source stopped. After a time-out the change may
    /// have been made. An abort with EAGAIN means that the file is not of the expected version.
    fn store<'a>(
        &'a self,
        target: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>>;

    /// True if a server is not known to refuse several pieces in one store.
    fn takes_several_pieces(&self, server: &Server) -> bool;

    /// True if a fetch of so many bytes from a server is a call of its own, as far as is known.
    fn fetches_by_call(&self, _: &Arc<Server>, _: u64) -> bool {
        true
    }

    /// Whether a call for the status of files of a directory should ask for a capability of the data path too.
    fn lacks_capability(&self, _: &Arc<Server>, _: TokenId, _: Fid) -> bool {
        false
    }

    /// What a call of a token, which began at a time, has brought for the files of a directory.
    fn capability_came(&self, _: &Arc<Server>, _: (TokenId, Fid), _: CapabilityOutcome, _: Instant) {}

    /// Statuses of files of a directory have come by a call of a token, each with the version and the length.
    fn statuses_came(&self, _: &Arc<Server>, _: (TokenId, Fid), _: &[(Fid, DataVersion, u64)]) {}

    /// Whether data goes to and from a server by the data path, in a few words.
    fn path_state(&self, _: &Arc<Server>) -> String {
        "off".into()
    }

    /// The drives to which a server has sent this client.
    fn drives(&self, _: &Arc<Server>) -> Vec<ExplainedDrive> {
        Vec::new()
    }
}

/// A store.
pub(crate) struct StoreRequest<'a> {
    pub fid: Fid,
    /// The directory in which the file was last seen.
    pub directory: Option<Fid>,
    /// Attributes set along with the data.
    pub status: SetStatus,
    /// In order, at most [`PIECES_MAX`].
    pub pieces: &'a [Piece],
    /// The version to which all pieces are applied together. `None`: one piece, for any version.
    pub expected: Option<DataVersion>,
}

impl StoreRequest<'_> {
    /// Name of the store in counters and errors.
    pub fn operation(&self) -> &'static str {
        match self.expected {
            Some(_) => fs::StoreRanges::NAME,
            None => fs::StoreData64::NAME,
        }
    }
}

/// Destination of fetched bytes.
pub(crate) trait Sink: Send {
    /// Begins with the number of bytes that will come. Bytes received before are discarded: they came by a route that
    /// ended early.
    fn begin(&mut self, length: u64);

    /// Takes the next bytes, in the parts in which they came. Must not be called again before the I/O is complete.
    fn put(&mut self, parts: Vec<Bytes>) -> CacheIo<()>;

    /// Called after the last bytes.
    fn end(&mut self) -> CacheIo<()> {
        CacheIo::done(Ok(()))
    }
}

/// Origin of bytes to be stored.
pub(crate) trait Source: Send {
    /// Starts to read `len` bytes of a piece at a position in the file, which lies in the piece.
    fn read(&mut self, piece: &Piece, at: u64, len: usize) -> CacheIo<Bytes>;

    /// Checks what was read before it is sent.
    fn check(
        &mut self,
        piece: &Piece,
        at: u64,
        len: usize,
        read: Result<Bytes>,
    ) -> std::result::Result<Bytes, Stopped>;
}

impl dyn Source + '_ {
    /// The bytes of a piece from a position, up to its end but at most [`PIECE`].
    pub async fn next(&mut self, piece: &Piece, at: u64) -> std::result::Result<Bytes, Stopped> {
        self.bytes(piece, at, piece.range.end.saturating_sub(at)).await
    }

    /// Bytes of a piece from a position, as many as are named, which it has, but at most [`PIECE`].
    pub async fn bytes(&mut self, piece: &Piece, at: u64, most: u64) -> std::result::Result<Bytes, Stopped> {
        let len = most.min(PIECE) as usize;
        let read = self.read(piece, at, len).await;
        self.check(piece, at, len, read)
    }
}

#[cfg(test)]
mod tests;
