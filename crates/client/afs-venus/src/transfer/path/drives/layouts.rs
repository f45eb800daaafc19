//! Bounded table of layouts, by token, file and version; and of volumes and files that have none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId, VolumeId};

use super::layout::Layout;
use crate::identity::TokenId;

/// Most files of one server of which layouts are kept.
const FILES_MAX: usize = 16 << 10;
/// Most parts of all layouts together: about 150 bytes each, and 70 for each copy in a list.
const PARTS_MAX: usize = 48 << 10;
/// Most volumes of which is kept that they have no layouts.
const VOLUMES_MAX: usize = 256;
/// How long a volume is not asked about that has no layouts.
const NONE_FOR: Duration = Duration::from_secs(180);
/// How long a file is not asked about of which no layout was given for another reason.
const REFUSED_FOR: Duration = Duration::from_secs(30);
/// Bytes of the first window, and of the longest file that is asked for with others.
pub(super) const FIRST_WINDOW: u64 = 8 << 20;
/// Bytes of the longest ones.
const LAST_WINDOW: u64 = 512 << 20;
/// How many times as far as the one before a window that grows ends.
const GROWTH: u64 = 8;

/// For whom a layout is, of what.
pub(super) type Key = (TokenId, Fid, DataVersion);

/// What the table has.
pub(super) enum Lookup {
    /// Whether its capabilities are good, the layout says ([`Layout::stand`]).
    Here(Arc<Layout>),
    /// Being asked for.
    Asked,
    /// No layout is here: the caller that gets this asks the file server for one of that range.
    Missing(Range<u64>),
    /// Not to be had for now.
    None,
}

/// The range for which a layout is asked for, so that reads of a file in any order ask for the same: 8 MiB, of which the first bytes are there
/// soonest; then up to 64 MiB, up to 512 MiB, and multiples of that.
fn window(at: u64) -> Range<u64> {
    if at >= LAST_WINDOW {
        let start = at / LAST_WINDOW * LAST_WINDOW;
        return start..start.saturating_add(LAST_WINDOW);
    }
    let (mut start, mut end) = (0, FIRST_WINDOW);
    while end <= at {
        (start, end) = (end, end * GROWTH);
    }
    start..end
}

/// Why there is no layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    /// The volume has none, or no drive of the file can be used.
    Volume,
    /// For another reason.
    File,
}

impl Refused {
    /// By what the file server replied.
    pub fn by(code: AbortCode) -> Self {
        if code == Errno::EOPNOTSUPP.to_uae() { Self::Volume } else { Self::File }
    }
}

/// The table.
#[derive(Default)]
pub(super) struct Layouts {
    files: BTreeMap<Key, File>,
    /// The files by their last use, without those that are being asked for.
    by_use: BTreeMap<u64, Key>,
    parts: usize,
    none: BTreeMap<(TokenId, VolumeId), Instant>,
    uses: u64,
}

#[derive(Default)]
struct File {
    /// By the position from which they were asked for.
    layouts: BTreeMap<u64, Arc<Layout>>,
    is_asked: bool,
    refused_until: Option<Instant>,
    used: u64,
}

impl File {
    fn parts(&self) -> usize {
        // A layout without parts takes room too.
        self.layouts.values().map(|layout| layout.parts() + 1).sum()
    }
}

impl Layouts {
    /// The layout for a position. Who is told that it is missing must call [`Layouts::answered`].
    pub fn look_up(&mut self, key: Key, at: u64, now: Instant) -> Lookup {
        if self.none.get(&(key.0, key.1.volume)).is_some_and(|until| now < *until)
            && !self.files.contains_key(&key)
        {
            return Lookup::None;
        }
        if !self.make_room(&key) {
            return Lookup::None;
        }
        let file = self.used(key);
        if let Some(layout) = file.layouts.values().rev().find(|layout| layout.range.contains(&at)) {
            return Lookup::Here(layout.clone());
        }
        if file.refused_until.is_some_and(|until| now < until) {
            return Lookup::None;
        }
        if std::mem::replace(&mut file.is_asked, true) {
            return Lookup::Asked;
        }
        let window = window(at);
        let start = if file.layouts.contains_key(&window.start) { at } else { window.start };
        let used = file.used;
        self.by_use.remove(&used);
        Lookup::Missing(start..window.end)
    }

    /// What the file server has replied to who asked.
    pub fn answered(&mut self, key: Key, reply: Result<Layout, Refused>, now: Instant) {
        let gives = reply.as_ref().is_err() && self.gives(key.0, key.1.volume);
        let Some(file) = self.files.get_mut(&key) else { return };
        file.is_asked = false;
        self.by_use.insert(file.used, key);
        match reply {
            Ok(layout) => {
                file.refused_until = None;
                self.change(key, |layouts| _ = layouts.insert(layout.range.start, Arc::new(layout)));
                self.forget_others(key);
                self.keep_within_bounds(key);
            }
            // Of a volume that gives layouts it is this file that has none.
            Err(Refused::Volume) if gives => file.refused_until = Some(now + NONE_FOR),
            Err(Refused::Volume) => {
                self.remove(&key);
                self.note_none((key.0, key.1.volume), now);
            }
            Err(Refused::File) => file.refused_until = Some(now + REFUSED_FOR),
        }
    }

    /// Whether a layout of any version of a file is here, or asked for.
    pub fn is_known(&self, (token, fid, _): Key) -> bool {
        let versions = (token, fid, DataVersion(0))..=(token, fid, DataVersion(u64::MAX));
        self.files.range(versions).next().is_some()
    }

    /// What was told of a file does not hold.
    pub fn failed(&mut self, key: Key) {
        self.change(key, BTreeMap::clear);
    }

    /// A file, which is there from now on, as the one that was used last.
    fn used(&mut self, key: Key) -> &mut File {
        self.uses += 1;
        let file = self.files.entry(key).or_default();
        self.by_use.remove(&file.used);
        file.used = self.uses;
        if !file.is_asked {
            self.by_use.insert(self.uses, key);
        }
        file
    }

    fn change(&mut self, key: Key, change: impl FnOnce(&mut BTreeMap<u64, Arc<Layout>>)) {
        let Some(file) = self.files.get_mut(&key) else { return };
        self.parts -= file.parts();
        change(&mut file.layouts);
        self.parts += file.parts();
    }

    fn remove(&mut self, key: &Key) {
        if let Some(file) = self.files.remove(key) {
            self.by_use.remove(&file.used);
            self.parts -= file.parts();
        }
    }

    fn gives(&self, token: TokenId, volume: VolumeId) -> bool {
        let first = (token, Fid::new(volume, VnodeId(0), Uniquifier(0)), DataVersion(0));
        let of_volume =
            self.files.range(first..).take_while(|(key, _)| (key.0, key.1.volume) == (token, volume));
        of_volume.into_iter().any(|(_, file)| !file.layouts.is_empty())
    }

    fn note_none(&mut self, volume: (TokenId, VolumeId), now: Instant) {
        self.none.retain(|_, until| now < *until);
        if self.none.len() >= VOLUMES_MAX {
            self.none.pop_first();
        }
        self.none.insert(volume, now + NONE_FOR);
    }

    /// Other versions of a file of which there is a layout are history.
    fn forget_others(&mut self, key: Key) {
        let versions = (key.0, key.1, DataVersion(0))..=(key.0, key.1, DataVersion(u64::MAX));
        let others = self.files.range(versions).filter(|(other, file)| **other != key && !file.is_asked);
        let others: Vec<_> = others.map(|(other, _)| *other).collect();
        others.iter().for_each(|other| self.remove(other));
    }

    /// Whether there is room for a file, after the one was given up that was not used for longest.
    fn make_room(&mut self, key: &Key) -> bool {
        self.files.contains_key(key) || self.files.len() < FILES_MAX || self.give_up_oldest(None)
    }

    fn keep_within_bounds(&mut self, newest: Key) {
        while self.parts > PARTS_MAX && self.give_up_oldest(Some(newest)) {}
        // One file alone: its newest layout stays.
        if self.parts > PARTS_MAX {
            self.change(newest, |layouts| *layouts = layouts.pop_last().into_iter().collect());
        }
    }

    fn give_up_oldest(&mut self, except: Option<Key>) -> bool {
        let oldest = self.by_use.values().find(|key| Some(**key) != except).copied();
        oldest.inspect(|key| self.remove(key)).is_some()
    }
}

#[cfg(test)]
mod tests;
