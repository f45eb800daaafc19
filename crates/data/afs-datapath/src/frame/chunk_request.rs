//! Requests for chunks: of a file server to a drive that stores them, and of clients that it sends there.

use std::fmt;
use std::ops::Range;

use afs_drive::{ChunkId, ChunkRef, MAX_CHUNK_LEN, Pieces};
use subtle::ConstantTimeEq;

use super::Content;
use crate::capability::{
    ClaimId, GroupTag, HolderId, KeyEpoch, Listed, Secret, StagingTag, Terms, TransferId,
};

/// Most chunks of one request to discard, and groups of one to revoke.
pub const CHUNKS_MAX: usize = 600;
/// Most live chunks of one request to sweep: a segment of 1 GiB has no more.
pub const LIVE_MAX: u32 = 1 << 18;
/// Most bytes of the list of ranges of a drive: for a million of them.
pub const RANGES_BYTES_MAX: u64 = (RANGE_LEN as u64) << 20;
/// Bytes of one range in that list: first id, last id.
pub const RANGE_LEN: usize = 32;
/// The longest chunk that a client may stage, in bytes: a chunk of a file lies within one mebibyte of it.
pub const STAGED_LEN_MAX: u32 = 1 << 20;
/// Most chunks of one room, and of one claim.
pub const STAGED_CHUNKS_MAX: u32 = 4096;
/// Bytes of a checksum before the bytes of a chunk.
pub const SUM_LEN: usize = 4;

/// What a file server wants of the chunks of its store on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChunkRequest {
    /// It begins to use the store: reply [`Begun`](super::ChunkReply::Begun). New chunks have ids greater than `after`.
    Begin {
        /// The greatest id that it still refers to.
        after: ChunkId,
    },
    /// It gives the bytes of a chunk, which follow: reply [`Written`](super::ChunkReply::Written). Not durable yet.
    Write {
        /// Bytes, 1 to [`MAX_CHUNK_LEN`].
        length: u32,
    },
    /// It wants the pieces in which a range lies, after the checksums of all pieces: reply Announce, then these bytes.
    Read {
        /// The chunk.
        chunk: ChunkRef,
        /// Where the range begins.
        start: u32,
        /// Where it ends.
        end: u32,
        /// Bytes that the drive may send before it gets more credit.
        credit: u32,
    },
    /// It wants all chunks durable whose writes were answered, and knows of none older than this one: reply
    /// [`Done`](super::ChunkReply::Done), or [`Forgotten`](super::Failure::Forgotten) if that one is of an earlier run.
    Sync {
        /// The least id of the chunks that must become durable.
        oldest: ChunkId,
    },
    /// It has no more use for these chunks: reply [`Done`](super::ChunkReply::Done).
    Discard {
        /// At most [`CHUNKS_MAX`].
        chunks: Vec<ChunkRef>,
    },
    /// It wants the ranges of ids, each up to [`LIVE_MAX`] chunks, in which all chunks before a mark are: reply Announce,
    /// then first and last id of each.
    Ranges {
        /// The mark.
        before: ChunkId,
        /// Bytes that the drive may send before it gets more credit.
        credit: u32,
    },
    /// It refers to no other chunks of a range than those that follow, 24 bytes each and in order: reply
    /// [`Swept`](super::ChunkReply::Swept).
    Sweep {
        /// First id of the range.
        first: ChunkId,
        /// Last id of the range.
        last: ChunkId,
        /// How many chunks follow, at most [`LIVE_MAX`].
        live: u32,
    },
    /// It wants to know how the drive is: reply [`Status`](super::ChunkReply::Status).
    Status,
    /// It gives the drive the key by which capabilities are sealed from now on: reply [`Done`](super::ChunkReply::Done), after which
    /// nothing is good that was sealed by the key of before, with which the request was permitted.
    Adopt {
        /// Epoch of the key: that of the drive's present one, and 1.
        epoch: KeyEpoch,
        /// The key.
        key: KeyBytes,
    },
    /// The file server revokes capabilities and bindings for groups, or asks for the latest generation if there are none: reply
    /// [`Revoked`](super::ChunkReply::Revoked).
    Revoke {
        /// At most [`CHUNKS_MAX`].
        groups: Vec<GroupTag>,
    },
    /// It revokes all of them: the same reply.
    RevokeAll,
    /// A client gives the bytes of a chunk, which follow, to be staged under the tag of its capability: reply
    /// [`Written`](super::ChunkReply::Written). Not durable yet.
    Stage {
        /// Bytes, 1 to [`STAGED_LEN_MAX`].
        length: u32,
    },
    /// The client gives up all that it has staged under the tag and the file server has not claimed: reply
    /// [`Done`](super::ChunkReply::Done).
    Forget,
    /// The file server makes staged chunks durable and its own, all or none. They follow, 24 bytes each: reply
    /// [`Done`](super::ChunkReply::Done), also to the same claim once more; [`NotStaged`](super::Failure::NotStaged).
    Claim {
        /// Its number.
        claim: ClaimId,
        /// The tag under which they were.
        tag: StagingTag,
        /// How many chunks follow, 1 to [`STAGED_CHUNKS_MAX`].
        count: u32,
    },
    /// The file server commands a transfer to a client, which waits for it with [`ChunkRequest::Receive`] or will do so in a moment:
    /// reply [`Done`](super::ChunkReply::Done).
    Deliver {
        /// The group of the client's capability.
        group: GroupTag,
        /// The client's number for it.
        transfer: TransferId,
        /// The chunk.
        chunk: ChunkRef,
        /// The bytes, and what ends the transfer.
        terms: Terms,
    },
    /// A client wants what [`ChunkRequest::Read`] gives, as soon as the file server has commanded it.
    Receive {
        /// Its number for the transfer, at random.
        transfer: TransferId,
        /// The chunk.
        chunk: ChunkRef,
        /// Where the range begins.
        start: u32,
        /// Where it ends.
        end: u32,
        /// Bytes that the drive may send before it gets more credit.
        credit: u32,
    },
    /// The file server commands the drive to take a chunk of a client, which waits with [`ChunkRequest::Send`] or will do so in a
    /// moment: reply [`Done`](super::ChunkReply::Done).
    Collect {
        /// The client, as its capability names it.
        holder: HolderId,
        /// The tag of the client's room.
        tag: StagingTag,
        /// The client's number for the transfer.
        transfer: TransferId,
        /// The bytes.
        content: Content,
    },
    /// A client wants to stage a chunk as by [`ChunkRequest::Stage`], as soon as the file server has commanded it. It sends the bytes
    /// when the drive gives credit for them. The same reply.
    Send {
        /// Its number for the transfer, at random.
        transfer: TransferId,
        /// The bytes.
        content: Content,
    },
    /// A client wants what [`ChunkRequest::Read`] gives, of a chunk of a list that is bound to the group of its capability.
    ReadListed {
        /// The chunk.
        chunk: ChunkRef,
        /// Where the range begins.
        start: u32,
        /// Where it ends.
        end: u32,
        /// Bytes that the drive may send before it gets more credit.
        credit: u32,
        /// That the chunk is in the list.
        listed: Box<Listed>,
    },
}

/// A key in a message: compared in tests only, shown by nobody.
#[derive(Clone)]
pub struct KeyBytes(pub Secret);

impl PartialEq for KeyBytes {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose().ct_eq(other.0.expose()).into()
    }
}

impl Eq for KeyBytes {}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyBytes(..)")
    }
}

impl ChunkRequest {
    /// Bytes that follow the request.
    #[must_use]
    pub fn incoming(&self) -> u64 {
        match self {
            Self::Write { length } => u64::from(*length),
            Self::Sweep { live, .. } => u64::from(*live) * ChunkRef::STORED_LEN as u64,
            Self::Begin { .. } | Self::Read { .. } | Self::Sync { .. } | Self::Discard { .. } => 0,
            Self::Ranges { .. } | Self::Status | Self::Adopt { .. } => 0,
            Self::Stage { length } => u64::from(*length),
            Self::Claim { count, .. } => u64::from(*count) * ChunkRef::STORED_LEN as u64,
            Self::Revoke { .. } | Self::RevokeAll | Self::Forget => 0,
            Self::Deliver { .. } | Self::Receive { .. } | Self::Collect { .. } | Self::ReadListed { .. } => 0,
            Self::Send { content, .. } => u64::from(content.length),
        }
    }

    /// How many of these bytes the client may send at once, where a store may begin with `window` of them.
    #[must_use]
    pub fn first_credit(&self, window: u32) -> u32 {
        if matches!(self, Self::Send { .. }) { 0 } else { window }
    }

    /// Of a request whose reply is bytes: how many there are at most, and the credit for them.
    #[must_use]
    pub fn outgoing(&self) -> Option<(u64, u32)> {
        match self {
            Self::Read { chunk, start, end, credit }
            | Self::ReadListed { chunk, start, end, credit, .. }
            | Self::Receive { chunk, start, end, credit, .. } => {
                let sums = SUM_LEN * Pieces::count(chunk.len);
                let bytes = Pieces::covering(chunk.len, &(*start..*end)).map_or(0, |range| range.len());
                Some(((sums + bytes) as u64, *credit))
            }
            Self::Ranges { credit, .. } => Some((RANGES_BYTES_MAX, *credit)),
            Self::Begin { .. } | Self::Write { .. } | Self::Sync { .. } | Self::Discard { .. } => None,
            Self::Sweep { .. } | Self::Status | Self::Adopt { .. } => None,
            Self::Revoke { .. } | Self::RevokeAll | Self::Deliver { .. } => None,
            Self::Stage { .. } | Self::Forget | Self::Claim { .. } => None,
            Self::Collect { .. } | Self::Send { .. } => None,
        }
    }

    /// Whether lengths, ranges and counts are within their bounds.
    pub(crate) fn is_valid(&self) -> bool {
        let is_length = |len: u32| (1..=MAX_CHUNK_LEN).contains(&(len as usize));
        let is_range = |range: Range<u32>, len: u32| range.start <= range.end && range.end <= len;
        match self {
            Self::Write { length } => is_length(*length),
            Self::Read { chunk, start, end, .. }
            | Self::ReadListed { chunk, start, end, .. }
            | Self::Receive { chunk, start, end, .. } => {
                is_length(chunk.len) && is_range(*start..*end, chunk.len)
            }
            Self::Deliver { chunk, terms, .. } => {
                is_length(chunk.len) && is_range(terms.start..terms.end, chunk.len)
            }
            Self::Discard { chunks } => chunks.len() <= CHUNKS_MAX,
            Self::Sweep { first, last, live } => first <= last && *live <= LIVE_MAX,
            Self::Begin { .. } | Self::Sync { .. } | Self::Ranges { .. } => true,
            Self::Revoke { groups } => groups.len() <= CHUNKS_MAX,
            Self::Stage { length } => (1..=STAGED_LEN_MAX).contains(length),
            Self::Claim { count, .. } => (1..=STAGED_CHUNKS_MAX).contains(count),
            Self::Collect { content, .. } | Self::Send { content, .. } => content.is_valid(),
            Self::Status | Self::Adopt { .. } | Self::RevokeAll | Self::Forget => true,
        }
    }
}
