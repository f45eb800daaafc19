//! What is in a cache file: which version, which bytes are here, which are unsaved.
//!
//! Pure bookkeeping: no bytes are moved here, so that every case can be tested.

use std::ops::Range;

use afs_wire::fs::Status;
use afs_wire::ids::{DataVersion, UnixSeconds};

use crate::api::Seek;
use crate::cache::{Kept, Ranges};
use crate::data::{Piece, Users};

/// Holes of one file that are known. What is a hole beyond that counts as data.
pub(crate) const HOLES_MAX: usize = 1 << 16;

/// State of the data of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// The version at the server that the data is, or was made from.
    pub version: DataVersion,
    /// The length of the file at the server.
    pub base_length: u64,
    /// The length as seen on this machine.
    pub length: u64,
    /// The bytes that are here.
    pub present: Ranges,
    /// Those of them that are zeros and take no room in the cache file.
    pub holes: Ranges,
    /// The bytes that the server does not have.
    pub dirty: Ranges,
    /// The bytes that are being stored.
    pub storing: Ranges,
    /// The bytes that are being fetched.
    pub fetching: Ranges,
    /// The bytes that readers are waiting for, or reading: these are not dropped to make room.
    pub pinned: Vec<Range<u64>>,
    /// How much of the server's file is still part of ours: the shortest length since the last store.
    pub cut: u64,
    /// Somebody here set a length, even if it is the one the file had: that changes its time, and must be stored.
    pub resized: bool,
    /// Something was changed here since the last close or fsync: what is unsaved may be a part of what somebody is at.
    pub changing: bool,
    /// When it was last changed here; goes with the next store.
    pub changed_at: Option<UnixSeconds>,
    /// Who uses it.
    pub users: Users,
    /// Stores by ourselves that failed since the last success.
    pub failures: u32,
}

impl Content {
    /// Nothing is here yet of a version of this length.
    pub fn new(version: DataVersion, length: u64) -> Self {
        Content {
            version,
            base_length: length,
            length,
            present: Ranges::new(),
            holes: Ranges::new(),
            dirty: Ranges::new(),
            storing: Ranges::new(),
            fetching: Ranges::new(),
            pinned: Vec::new(),
            cut: length,
            resized: false,
            changing: false,
            changed_at: None,
            users: Users::default(),
            failures: 0,
        }
    }

    /// What a store kept of a version.
    pub fn of_kept(version: DataVersion, kept: Kept) -> Self {
        Content { present: kept.present, holes: kept.holes, ..Content::new(version, kept.length) }
    }

    /// What to keep, when nothing is unsaved.
    pub fn to_kept(&self) -> Option<Kept> {
        let kept = || Kept { length: self.length, present: self.present.clone(), holes: self.holes.clone() };
        (!self.is_dirty()).then(kept)
    }

    /// Whether the server lacks something.
    pub fn is_dirty(&self) -> bool {
        self.resized
            || !self.dirty.is_empty()
            || !self.storing.is_empty()
            || self.cut != self.base_length
            || self.length != self.base_length
    }

    /// Whether all bytes are here.
    pub fn is_complete(&self) -> bool {
        self.present.contains(&(0..self.length))
    }

    /// Bytes that only we have.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty.bytes() + self.storing.bytes()
    }

    /// Somebody here wrote these bytes.
    pub fn wrote(&mut self, range: Range<u64>, at: UnixSeconds) {
        if range.is_empty() {
            return;
        }
        self.grow(range.start);
        self.length = self.length.max(range.end);
        self.present.insert(range.clone());
        self.holes.remove(range.clone());
        self.dirty.insert(range);
        self.changing = true;
        self.changed_at = Some(at);
    }

    /// Somebody here cut or grew the file.
    pub fn set_length(&mut self, length: u64, at: UnixSeconds) {
        self.resized = true;
        self.changing = true;
        self.grow(length);
        self.length = length;
        self.cut = self.cut.min(length);
        for ranges in [&mut self.present, &mut self.holes, &mut self.dirty] {
            ranges.remove(length..u64::MAX);
        }
        self.changed_at = Some(at);
    }

    /// Bytes between the end and a place behind it are zeros, here and (after the store) at the server.
    fn grow(&mut self, to: u64) {
        if to > self.length {
            self.present.insert(self.length..to);
            self.add_hole(self.length..to);
            self.length = to;
        }
    }

    /// Beyond the bound a hole counts as data, which costs time and room and nothing else.
    fn add_hole(&mut self, range: Range<u64>) {
        if self.holes.count() < HOLES_MAX {
            self.holes.insert(range);
        }
    }

    /// The kernel wrote behind our back; the file is complete and of this length, and has data in these ranges only.
    pub fn wrote_data(&mut self, length: u64, data: &Ranges, at: UnixSeconds) {
        self.set_length(length, at);
        self.present = Ranges::whole(length);
        self.holes = Ranges::new();
        data.gaps(0..length).into_iter().for_each(|hole| self.add_hole(hole));
        data.parts(0..length).into_iter().for_each(|range| self.dirty.insert(range));
    }

    /// Somebody here made a range zeros that take no room, as far as the file reaches.
    pub fn zeroed(&mut self, range: Range<u64>, at: UnixSeconds) {
        let range = range.start..range.end.min(self.length);
        if range.is_empty() {
            return;
        }
        let kept = range.start..range.end.min(self.cut).min(self.base_length);
        // The server has zeros already in holes that it was not told anything about, and beyond what it keeps; unless a store
        // is just bringing something there.
        let told = self.holes.gaps(kept.start..kept.end.max(kept.start));
        let being_told = self.storing.parts(range.clone());
        told.into_iter().chain(being_told).for_each(|part| self.dirty.insert(part));
        self.present.insert(range.clone());
        self.add_hole(range);
        self.resized = true;
        self.changing = true;
        self.changed_at = Some(at);
    }

    /// A range that was taken for a hole is none after all.
    pub fn unzero(&mut self, range: Range<u64>) {
        self.holes.remove(range);
    }

    /// The next position of a kind; `None` if there is none before the end.
    pub fn seek(&self, from: u64, wanted: Seek) -> Option<u64> {
        let hole = self.holes.around(from);
        let found = match (wanted, hole) {
            (Seek::Data, Some(hole)) => hole.end,
            (Seek::Hole, None) => self.holes.next_start(from).unwrap_or(self.length).min(self.length),
            (Seek::Data, None) | (Seek::Hole, Some(_)) => from,
        };
        let is_there = from < self.length && (found < self.length || wanted == Seek::Hole);
        is_there.then_some(found)
    }

    /// Bytes of our version have arrived. Those in `holes` were zeros, and take no room here.
    pub fn fetched(&mut self, range: Range<u64>, holes: &Ranges) {
        let end = range.end.min(self.length).min(self.cut);
        if range.start >= end {
            return;
        }
        self.present.insert(range.start..end);
        self.holes.remove(range.start..end);
        holes.parts(range.start..end).into_iter().for_each(|hole| self.add_hole(hole));
    }

    /// A piece is at the server, whose file has this version and length.
    pub fn stored(&mut self, piece: &Piece, version: DataVersion, length: u64) {
        self.storing.remove(piece.range.clone());
        self.version = version;
        self.base_length = length;
    }

    /// All pieces are.
    pub fn store_done(&mut self) {
        self.storing = Ranges::new();
        self.cut = self.cut.min(self.base_length);
        if !self.is_dirty() {
            self.changing = false;
            self.changed_at = None;
        }
        self.failures = 0;
    }

    /// The store failed; what was not stored is still unsaved. `cut` is what [`Content::cut`] was before.
    pub fn store_failed(&mut self, cut: u64, any_stored: bool) {
        self.store_stopped(cut, any_stored);
        self.failures = self.failures.saturating_add(1);
    }

    /// The store was stopped, to begin anew or to be left to another one; likewise.
    pub fn store_stopped(&mut self, cut: u64, any_stored: bool) {
        let unsaved: Vec<_> = self.storing.parts(0..self.length);
        unsaved.into_iter().for_each(|range| self.dirty.insert(range));
        self.storing = Ranges::new();
        self.resized = true;
        self.cut = if any_stored { self.cut.min(self.base_length) } else { self.cut.min(cut) };
    }

    /// Whether the server's file may be what a store of ours, whose answer never came, made of it. Another machine's store
    /// may look alike: the bytes have to be compared. `into` is the version that it was made into.
    pub fn may_be_stored(&self, status: &Status, into: DataVersion) -> bool {
        status.data_version == into.next()
            && status.length == self.length
            && Some(status.client_mod_time) == self.changed_at
    }

    /// The bytes by which a store of ours is known at the server: what is unsaved, and all data of the file if it is here.
    pub fn marks_of_store(&self) -> Ranges {
        let mut marks = match self.is_complete() {
            true => self.data(),
            false => Ranges::new(),
        };
        self.dirty.iter().chain(self.storing.iter()).for_each(|range| marks.insert(range));
        marks
    }

    /// All of the file but its holes.
    pub fn data(&self) -> Ranges {
        let mut data = Ranges::whole(self.length);
        self.holes.iter().for_each(|hole| data.remove(hole));
        data
    }

    /// Only these bytes are known to be those of the server's version.
    pub fn keep_only(&mut self, ranges: Ranges) {
        self.present = ranges;
        self.keep_holes_present();
    }

    fn keep_holes_present(&mut self) {
        let end = self.length.max(self.holes.end());
        self.present.gaps(0..end).into_iter().for_each(|gap| self.holes.remove(gap));
    }

    /// Another store came between ours and the server's copy has something of both: all of the file is unsaved again.
    pub fn start_over(&mut self) {
        self.dirty = self.data();
        self.cut = 0;
        self.resized = true;
    }

    /// The server has everything, as this version.
    pub fn was_stored(&mut self, version: DataVersion) {
        self.version = version;
        self.base_length = self.length;
        self.cut = self.length;
        self.dirty = Ranges::new();
        self.storing = Ranges::new();
        self.resized = false;
        self.changing = false;
        self.changed_at = None;
        self.failures = 0;
    }

    /// The server's file is of another version now, and something here is unsaved: what is not unsaved is worthless.
    pub fn rebase(&mut self, version: DataVersion, base_length: u64) {
        if version == self.version {
            return;
        }
        let unsaved: Vec<_> = self.dirty.iter().chain(self.storing.iter()).collect();
        let cut_here = self.cut < self.base_length;
        let grown = self.length > self.base_length;
        let tail = self.base_length..self.length;
        self.present = Ranges::new();
        unsaved.into_iter().for_each(|range| self.present.insert(range));
        if grown {
            self.present.insert(tail);
        }
        self.version = version;
        self.base_length = base_length;
        self.keep_holes_present();
        if !cut_here && !grown && self.dirty.end().max(self.storing.end()) < self.length {
            self.length = base_length.max(self.dirty.end()).max(self.storing.end());
        }
        self.cut = if cut_here { self.cut.min(base_length) } else { base_length };
    }

    /// The same when nothing is unsaved: all of it is to be fetched, and only who uses it stays.
    pub fn renew(&mut self, version: DataVersion, length: u64) {
        let new = Content::new(version, length);
        let pinned = std::mem::take(&mut self.pinned);
        let fetching = std::mem::replace(&mut self.fetching, Ranges::new());
        *self = Content { pinned, fetching, users: self.users, ..new };
    }

    /// Clean bytes outside `wanted` that can be dropped to free up to `bytes`, from the beginning on; they are taken
    /// out of what is present.
    pub fn shed(&mut self, bytes: u64, wanted: &Range<u64>) -> Vec<Range<u64>> {
        let mut clean = self.present.clone();
        let needed = self.pinned.iter().cloned().chain([wanted.clone()]);
        for keep in self.dirty.iter().chain(self.storing.iter()).chain(needed) {
            clean.remove(keep);
        }
        // No room would be won by dropping holes, and zeros beyond the server's file cannot be fetched again.
        self.holes.iter().for_each(|hole| clean.remove(hole));
        clean.remove(self.cut.min(self.base_length)..u64::MAX);
        let mut shed = Vec::new();
        let mut freed = 0;
        for range in clean.iter() {
            if freed >= bytes {
                break;
            }
            let range = range.start..range.end.min(range.start + (bytes - freed));
            freed += range.end - range.start;
            shed.push(range);
        }
        shed.iter().for_each(|range| self.present.remove(range.clone()));
        shed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Piece, Share};

    const NOW: UnixSeconds = UnixSeconds(1000);

    fn complete(length: u64) -> Content {
        Content { present: Ranges::whole(length), ..Content::new(DataVersion(5), length) }
    }

    fn piece(range: Range<u64>, file_length: u64) -> Piece {
        Piece { range, file_length }
    }

    /// A server that does what the protocol says.
    fn server_stores(file: &mut Vec<u8>, piece: &Piece, ours: &[u8]) {
        if (piece.file_length as usize) < file.len() {
            file.truncate(piece.file_length as usize);
        }
        let (start, end) = (piece.range.start as usize, piece.range.end as usize);
        if file.len() < end {
            file.resize(end, 0);
        }
        file[start..end].copy_from_slice(&ours[start..end]);
    }

    #[test]
    fn what_is_stored_and_how() {
        type Row = (&'static str, u64, fn(&mut Content), Vec<Piece>);
        let table: Vec<Row> = vec![
            ("nothing", 100, |_| (), vec![]),
            ("new file", 0, |c| c.wrote(0..3000, NOW), vec![piece(0..3000, 3000)]),
            ("append", 100, |c| c.wrote(100..130, NOW), vec![piece(100..130, 130)]),
            ("in the middle", 100, |c| c.wrote(10..20, NOW), vec![piece(10..20, 100)]),
            ("cut", 100, |c| c.set_length(50, NOW), vec![piece(50..50, 50)]),
            ("cut to nothing", 100, |c| c.set_length(0, NOW), vec![piece(0..0, 0)]),
            ("set to the length it had", 100, |c| c.set_length(100, NOW), vec![piece(100..100, 100)]),
            ("grown", 100, |c| c.set_length(500, NOW), vec![piece(500..500, 500)]),
            ("beyond the end", 100, |c| c.wrote(400..500, NOW), vec![piece(400..500, 500)]),
            (
                "cut and written anew",
                100,
                |c| {
                    c.set_length(0, NOW);
                    c.wrote(0..30, NOW);
                },
                vec![piece(0..30, 0)],
            ),
            (
                "cut, then written behind a hole",
                100,
                |c| {
                    c.set_length(10, NOW);
                    c.wrote(50..60, NOW);
                },
                vec![piece(50..60, 10)],
            ),
            (
                "written, then grown",
                0,
                |c| {
                    c.wrote(0..10, NOW);
                    c.set_length(90, NOW);
                },
                vec![piece(0..10, 90), piece(90..90, 90)],
            ),
            (
                "near ranges travel together",
                1000,
                |c| {
                    c.wrote(0..10, NOW);
                    c.wrote(500..510, NOW);
                },
                vec![piece(0..510, 1000)],
            ),
        ];
        for (what, length, change, pieces) in table {
            let mut content = complete(length);
            change(&mut content);
            assert_eq!(content.is_dirty(), !pieces.is_empty(), "{what}");
            assert_eq!(content.begin_store(Share::Unsaved), pieces, "{what}");
        }
    }

    #[test]
    fn far_ranges_travel_alone_when_what_is_between_is_not_here() {
        let mut content = Content::new(DataVersion(5), 1000);
        content.wrote(0..10, NOW);
        content.wrote(500..510, NOW);
        assert_eq!(content.begin_store(Share::Unsaved), [piece(0..10, 1000), piece(500..510, 1000)]);
    }

    /// Random histories of writes and cuts against a plain byte vector and a server that follows the protocol.
    #[test]
    fn any_history_of_changes_reaches_the_server() {
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..3000 {
            let base = random(60);
            let mut server: Vec<u8> = (0..base).map(|n| n as u8 + 1).collect();
            let mut ours = server.clone();
            let mut content = complete(base);
            for step in 0..random(7) {
                match random(6) {
                    4 => {
                        let start = random(80);
                        let range = start..start + random(40);
                        let end = ours.len();
                        ours[end.min(start as usize)..end.min(range.end as usize)].fill(0);
                        content.zeroed(range, NOW);
                    }
                    5 => {
                        // The kernel writes by itself, and all of the file but some of its holes counts as data.
                        let (at, hole) = (random(90), random(60));
                        if ours.len() <= at as usize {
                            ours.resize(at as usize + 1, 0);
                        }
                        ours[at as usize] = 200 + step as u8;
                        let mut data = Ranges::whole(ours.len() as u64);
                        let zeros = (hole..ours.len() as u64).take_while(|n| ours[*n as usize] == 0).count();
                        data.remove(hole..hole + zeros as u64);
                        content.wrote_data(ours.len() as u64, &data, NOW);
                    }
                    0 => {
                        let length = random(80);
                        ours.resize(length as usize, 0);
                        content.set_length(length, NOW);
                    }
                    1 => {
                        let share =
                            [Share::Unsaved, Share::Unsaved, Share::Data, Share::Bytes][random(4) as usize];
                        store(&mut content, &mut server, &ours, share, random(3));
                    }
                    _ => {
                        let start = random(70);
                        let range = start..start + random(20);
                        if !range.is_empty() && ours.len() < range.end as usize {
                            ours.resize(range.end as usize, 0);
                        }
                        range.clone().for_each(|n| ours[n as usize] = 100 + step as u8);
                        content.wrote(range, NOW);
                    }
                }
                assert_eq!(content.length, ours.len() as u64, "round {round}");
                check_holes(&content, &ours);
            }
            store(&mut content, &mut server, &ours, Share::Unsaved, 99);
            assert_eq!(server, ours, "round {round}");
            assert!(!content.is_dirty(), "round {round}: {content:?}");
        }
    }

    /// Holes are zeros, and what is looked for is found.
    fn check_holes(content: &Content, ours: &[u8]) {
        let is_hole = |n: &u64| content.holes.contains(&(*n..*n + 1));
        let end = content.length;
        assert!((0..end).filter(is_hole).all(|n| ours[n as usize] == 0) && content.holes.end() <= end);
        for from in 0..end + 2 {
            let hole = (from..end).find(is_hole).or((from < end).then_some(end));
            assert_eq!(content.seek(from, Seek::Hole), hole, "{from} of {content:?}");
            assert_eq!(
                content.seek(from, Seek::Data),
                (from..end).find(|n| !is_hole(n)),
                "{from} of {content:?}"
            );
        }
    }

    /// Stores; the call after `good` calls fails.
    fn store(content: &mut Content, server: &mut Vec<u8>, ours: &[u8], share: Share, good: u64) {
        let cut = content.cut;
        for (n, piece) in content.begin_store(share).iter().enumerate() {
            if n as u64 == good {
                return content.store_failed(cut, n > 0);
            }
            server_stores(server, piece, ours);
            content.stored(piece, content.version.next(), server.len() as u64);
        }
        content.store_done();
    }

    #[test]
    fn what_is_sent_of_a_file_with_holes() {
        let mut content = Content::new(DataVersion(5), 0);
        let tib = 1 << 40;
        content.wrote(0..10, NOW);
        content.wrote(tib..tib + 10, NOW);
        content.set_length(2 * tib, NOW);
        let pieces = |content: &Content, share| content.clone().begin_store(share);
        let ranges = |pieces: Vec<Piece>| pieces.into_iter().map(|piece| piece.range).collect::<Vec<_>>();
        let all = [0..10, tib..tib + 10, 2 * tib..2 * tib];
        assert_eq!(
            (content.share(false, true), content.share(false, false)),
            (Share::Unsaved, Share::Unsaved)
        );
        assert_eq!((content.share(true, true), content.share(true, false)), (Share::Data, Share::Data));
        assert_eq!(ranges(pieces(&content, Share::Unsaved)), all);
        content.was_stored(DataVersion(6));
        assert_eq!(ranges(pieces(&content, Share::Data)), all);
        assert_eq!(pieces(&content, Share::Data)[0].file_length, 0);
        // A hole where the server has data is zeros to be sent, unless it is less to send the rest.
        content.zeroed(0..5, NOW);
        assert_eq!(pieces(&content, Share::Unsaved), [piece(0..5, 2 * tib)]);
        assert_eq!(content.share(false, true), Share::Unsaved);
        content.zeroed(0..tib + 9, NOW);
        assert_eq!(content.share(false, true), Share::Data);
        assert_eq!(ranges(pieces(&content, Share::Data)), [tib + 9..tib + 10, 2 * tib..2 * tib]);
    }

    #[test]
    fn what_replaces_another_version_leaves_nothing_of_it_in_its_holes() {
        let mut content = Content::new(DataVersion(5), 0);
        content.wrote(20..30, NOW);
        assert_eq!(content.begin_store(Share::Data), [piece(20..30, 0)]);
    }

    #[test]
    fn small_holes_are_sent_along_to_a_server_that_takes_one_range() {
        let mut content = complete(1 << 20);
        content.set_length(10 << 20, NOW);
        content.wrote(9 << 20..10 << 20, NOW);
        content.wrote(0..10, NOW);
        assert_eq!(content.share(false, false), Share::Bytes);
        assert_eq!(content.begin_store(Share::Bytes), [piece(0..10 << 20, 0)]);
    }

    #[test]
    fn shedding_leaves_what_is_wanted_and_what_is_unsaved() {
        let mut content = complete(1000);
        content.wrote(100..200, NOW);
        assert_eq!(content.shed(150, &(0..50)), [50..100, 200..300]);
        assert!(content.present.contains(&(0..50)) && content.present.contains(&(100..200)));
        assert!(!content.is_complete());
    }

    #[test]
    fn what_a_reader_waits_for_is_not_shed() {
        let mut content = complete(1000);
        content.pinned.push(0..600);
        assert_eq!(content.shed(900, &(900..1000)).pop(), Some(600..900));
    }

    #[test]
    fn another_version_under_unsaved_data_keeps_the_unsaved_data_only() {
        let mut content = complete(1000);
        content.wrote(100..200, NOW);
        content.rebase(DataVersion(9), 400);
        assert_eq!((content.present.iter().next(), content.present.count()), (Some(100..200), 1));
        assert_eq!((content.length, content.base_length, content.version), (400, 400, DataVersion(9)));
    }
}
