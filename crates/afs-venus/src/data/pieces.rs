//! What a store sends: the ranges that are unsaved, or the file's data without its holes.

use std::ops::Range;

use afs_wire::fs::STORE_RANGES_MAX;

use crate::cache::Ranges;
use crate::data::{Content, Piece};

/// Ranges closer together than this are sent as one, if what lies between them is here.
const GAP_MAX: u64 = 256 << 10;
/// Bytes of holes that are sent as zeros to a server that takes one range a call, so that the file is stored as a whole.
const ZEROS_MAX: u64 = 16 << 20;

/// How much of a file a store sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreScope {
    /// What is unsaved.
    Dirty,
    /// All data, into a file that is cut to nothing first.
    Data,
    /// All bytes from the first to the last.
    Bytes,
}

impl Content {
    /// What a store is to send. One that `replaces` another version than ours was made from must send all of the file,
    /// which is here then. Who takes one range a call gets a file that is all here as a whole, if its holes are small.
    pub fn store_scope(&self, replaces: bool, takes_ranges: bool) -> StoreScope {
        if !self.is_complete() {
            return StoreScope::Dirty;
        }
        let several = replaces || self.pieces(StoreScope::Dirty).len() > 1;
        if several && !takes_ranges && self.holes.bytes() <= ZEROS_MAX {
            return StoreScope::Bytes;
        }
        match replaces || self.is_sooner_sent_anew() {
            true => StoreScope::Data,
            false => StoreScope::Dirty,
        }
    }

    /// Whether all data are less than what is unsaved, zeros in the place of data of before among it, or in fewer places
    /// than can be sent at once.
    fn is_sooner_sent_anew(&self) -> bool {
        let kept = self.kept(StoreScope::Dirty);
        let below = |range: Range<u64>| range.start..range.end.min(kept).max(range.start);
        let holes = self.dirty.iter().flat_map(|range| self.holes.parts(below(range)));
        let zeros: u64 = holes.map(|hole| hole.end - hole.start).sum();
        zeros > self.length - self.holes.bytes() || self.pieces(StoreScope::Dirty).len() > STORE_RANGES_MAX
    }

    /// The calls that bring the server up to date; the unsaved bytes are now being stored.
    pub fn begin_store(&mut self, scope: StoreScope) -> Vec<Piece> {
        let pieces = self.pieces(scope);
        self.storing = std::mem::take(&mut self.dirty);
        self.cut = self.length;
        self.resized = false;
        pieces
    }

    /// FileLength cuts the server's file before the bytes go in, and a store of no bytes beyond the end grows it
    /// (docs/protocol/fileserver.md "4. Data framing on the split calls").
    fn pieces(&self, scope: StoreScope) -> Vec<Piece> {
        let kept = self.kept(scope);
        let piece = |range| Piece { range, file_length: self.length };
        let mut pieces: Vec<Piece> = self.joined(&self.to_send(scope, kept)).into_iter().map(piece).collect();
        let reached = pieces.last().map_or(kept, |piece| piece.range.end.max(kept));
        let unsent = kept < self.base_length || scope != StoreScope::Dirty || self.resized;
        if reached < self.length || (pieces.is_empty() && unsent) {
            pieces.push(piece(self.length..self.length));
        }
        // The version that is replaced may be longer than the one that ours was made from.
        if let Some(first) = pieces.first_mut()
            && (kept < self.base_length || scope != StoreScope::Dirty)
        {
            first.file_length = kept;
        }
        pieces
    }

    /// How much of the server's file stays.
    fn kept(&self, scope: StoreScope) -> u64 {
        if scope == StoreScope::Dirty { self.cut.min(self.base_length) } else { 0 }
    }

    /// Holes are zeros at the server by themselves, but for those where it has something else yet.
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
