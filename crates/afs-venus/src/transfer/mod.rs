//! Moving bytes of files between a server and this machine, whatever carries them.
//!
//! A [`Transfer`] is one attempt at one target. It knows calls and streams and nothing of cache files: what it fetches goes to a
//! [`Sink`], what it stores comes from a [`Source`]. Either keeps no more than one piece in memory, and each waits for the other.
//! What is fetched counts only when the transfer has answered, what is stored likewise: a transfer that ends early may be made
//! again, the same way or another. So one way may stand before another and leave to it, unnoticed, what it could not do itself.

mod cache_sink;
mod cache_source;
mod hole_detector;
mod memory_sink;
mod rpc;

pub(crate) use cache_sink::{CacheSink, Received};
pub(crate) use cache_source::{CacheSource, SourceFailure, SourceReport};
pub(crate) use memory_sink::MemorySink;
pub(crate) use rpc::Rpc;

use std::ops::Range;

use afs_rpc::{BoxFuture, CallError};
use afs_wire::fs::{self, FetchDataReply, SetStatus, StatusReply};
use afs_wire::ids::{DataVersion, Fid};
use afs_wire::rpc::Request;
use bytes::Bytes;

use crate::cache::CacheIo;
use crate::calls::Target;
use crate::data::Piece;
use crate::error::Result;
use crate::location::Server;

/// What a fetch is counted and told as.
pub(crate) const FETCH: &str = fs::FetchData64::NAME;
/// Most bytes of a piece that are on their way between the cache and what carries them.
pub(crate) const PIECE: u64 = 256 << 10;
/// Most pieces of a [`StoreRequest`].
pub(crate) const PIECES_MAX: usize = fs::STORE_RANGES_MAX;

/// How a transfer ended.
pub(crate) type TransferResult<T> = std::result::Result<T, CallError>;

/// The one on this side does not go on, and knows why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stopped;

/// A way for bytes between this machine and servers.
pub(crate) trait Transfer: Send + Sync + 'static {
    /// Gives a sink the bytes of a range as the server has them: from its start, without gaps, fewer where the file ends before.
    ///
    /// # Errors
    /// Why not all of them came; [`CallError::GivenUp`] where the sink takes no more.
    fn fetch<'a>(
        &'a self,
        target: &'a Target,
        fid: Fid,
        range: Range<u64>,
        sink: &'a mut dyn Sink,
    ) -> BoxFuture<'a, TransferResult<FetchDataReply>>;

    /// Changes a file by the bytes that a source gives. The change is made as a whole, or not at all.
    ///
    /// # Errors
    /// Why there is no answer that it was made; [`CallError::GivenUp`] where the source gives no more. After silence it may have
    /// been made. An abort with EAGAIN says that the file is not of the expected version.
    fn store<'a>(
        &'a self,
        target: &'a Target,
        change: &'a StoreRequest<'a>,
        source: &'a mut dyn Source,
    ) -> BoxFuture<'a, TransferResult<StatusReply>>;

    /// Whether a server takes several pieces in one change, as far as that is known.
    fn takes_several_pieces(&self, server: &Server) -> bool;
}

/// What a store changes.
pub(crate) struct StoreRequest<'a> {
    pub fid: Fid,
    /// Set along with the data.
    pub status: SetStatus,
    /// In order, at most [`PIECES_MAX`].
    pub pieces: &'a [Piece],
    /// The version that all pieces are made into together. `None`: one piece, into whatever is there.
    pub expected: Option<DataVersion>,
}

impl StoreRequest<'_> {
    /// What the store is counted and told as.
    pub fn operation(&self) -> &'static str {
        match self.expected {
            Some(_) => fs::StoreRanges::NAME,
            None => fs::StoreData64::NAME,
        }
    }
}

/// Where fetched bytes go.
pub(crate) trait Sink: Send {
    /// So many bytes will come, the first one next. What came before counts no more: it came another way, which ended early.
    fn begin(&mut self, length: u64);

    /// Takes the next bytes, in the parts in which they came. Nothing more is given before the work is done.
    fn put(&mut self, parts: Vec<Bytes>) -> CacheIo<()>;

    /// All have come.
    fn end(&mut self) -> CacheIo<()> {
        CacheIo::done(Ok(()))
    }
}

/// Where bytes to be stored come from.
pub(crate) trait Source: Send {
    /// Begins to read `len` bytes of a piece at a position in the file, which lie in the piece.
    fn read(&mut self, piece: &Piece, at: u64, len: usize) -> CacheIo<Bytes>;

    /// Looks at what was read there before it leaves.
    fn check(
        &mut self,
        piece: &Piece,
        at: u64,
        len: usize,
        read: Result<Bytes>,
    ) -> std::result::Result<Bytes, Stopped>;
}

impl dyn Source + '_ {
    /// The bytes of a piece from a position on: all of them up to its end, or [`PIECE`].
    pub async fn next(&mut self, piece: &Piece, at: u64) -> std::result::Result<Bytes, Stopped> {
        let len = piece.range.end.saturating_sub(at).min(PIECE) as usize;
        let read = self.read(piece, at, len).await;
        self.check(piece, at, len, read)
    }
}

#[cfg(test)]
mod tests;
