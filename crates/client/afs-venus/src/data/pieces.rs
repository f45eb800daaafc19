//! Ranges that a store sends: the dirty ranges, or the file's data without its holes.

use std::ops::Range;

use afs_wire::fs::STORE_RANGES_MAX;

use crate::cache::Ranges;
use crate::data::{Content, Piece};

/// Dirty ranges closer together than this are sent as one if the bytes between them are cached.
const GAP_MAX: u64 = 256 << 10;
/// Bytes of holes that are sent as zeros to a server that accepts one range per call, so that the file is stored as a
/// whole.
const ZEROS_MAX: u64 = 16 << 20;

/// Which part of a file a store sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreScope {
    /// The dirty ranges.
    Dirty,
    /// All data without holes, after truncation to length 0.
    Data,
    /// All bytes from the first to the last.
    Bytes,
}

impl Content {
    /// What a store must send. A store that `replaces` a version other than the base of the local data sends the whole
    /// file, which is cached then. A server that accepts one range per call gets a fully cached file as a whole, if its
    /// holes are small.
    pub fn store_scope(&self, replaces: bool, takes_ranges: bool) -> StoreScope {
        if !self.is_complete() {
            return StoreScope::Dirty;
        }
        let several = replaces || self.pieces(StoreScope::Dirty).len() > 1;
        if several && !takes_ranges && self.holes.bytes() <= ZEROS_MAX {
            return StoreScope::Bytes;
        }
        match replaces || self.is_smaller_as_whole() {
            true => StoreScope::Data,
            false => StoreScope::Dirty,
        }
    }

    /// True if all data is smaller than the zeros to be sent in place of earlier data, or if there are more dirty
    /// ranges than fit into one call.
    fn is_smaller_as_whole(&self) -> bool {
        let kept = self.kept(StoreScope::Dirty);
        let below = |range: Range<u64>| range.start..range.end.min(kept).max(range.start);
        let holes = self.dirty.iter().flat_map(|range| self.holes.parts(below(range)));
        let zeros: u64 = holes.map(|hole| hole.end - hole.start).sum();
        zeros > self.length - self.holes.bytes() || self.pieces(StoreScope::Dirty).len() > STORE_RANGES_MAX
    }

    /// Returns the pieces that bring the server up to date; the dirty bytes are now being stored.
    pub fn begin_store(&mut self, scope: StoreScope) -> Vec<Piece> {
        let pieces = self.pieces(scope);
        self.storing = std::mem::take(&mut self.dirty);
        self.cut = self.length;
        self.resized = false;
        pieces
    }

    /// The server truncates its file to FileLength before it writes the bytes, and a store of no bytes beyond the end
    /// extends it (docs/protocol/fileserver.md "4. Data framing on the split calls").
    fn pieces(&self, scope: StoreScope) -> Vec<Piece> {
        let kept = self.kept(scope);
        let piece = |range| Piece { range, file_length: self.length };
        let mut pieces: Vec<Piece> = self.joined(&self.to_send(scope, kept)).into_iter().map(piece).collect();
        let reached = pieces.last().map_or(kept, |piece| piece.range.end.max(kept));
        let unsent = kept < self.base_length || scope != StoreScope::Dirty || self.resized;
        if reached < self.length || (pieces.is_empty() && unsent) {
            pieces.push(piece(self.length..self.length));
        }
        // The version that is replaced may be longer than the base of the local data.
        if let Some(first) = pieces.first_mut()
            && (kept < self.base_length || scope != StoreScope::Dirty)
        {
            first.file_length = kept;
        }
        pieces
    }

    /// Length of the part of the server's file that is kept.
    fn kept(&self, scope: StoreScope) -> u64 {
        if scope == StoreScope::Dirty { self.cut.min(self.base_length) } else { 0 }
    }

    /// Holes are not sent, except where the server has other data.
    fn to_send(&self, scope: StoreScope, kept: u64) -> Ranges {
        let mut bytes = match scope {
            StoreScope::Dirty => self.dirty.clone(),
            StoreScope::Data | StoreScope::Bytes => Ranges::whole(self.length),
        };
        if scope != StoreScope::Bytes {
            let end = self.length.max(kept);
            self.holes.parts(kept..end).into_iter().for_each(|hole| bytes.remove(hole));
        }
        bytes
    }

    fn joined(&self, ranges: &Ranges) -> Vec<Range<u64>> {
        let mut joined: Vec<Range<u64>> = Vec::new();
        for range in ranges.iter() {
            match joined.last_mut() {
                Some(last)
                    if range.start - last.end <= GAP_MAX
                        && self.present.contains(&(last.end..range.start)) =>
                {
                    last.end = range.end;
                }
                _ => joined.push(range),
            }
        }
        joined
    }
}
