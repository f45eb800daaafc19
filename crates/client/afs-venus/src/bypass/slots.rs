//! Bookkeeping of ranges in memory: by open file, each here or on its way, bounded for one file and for all together.
//!
//! Memory is charged from the claim of a range on: to its slot as soon as the bytes are here, to the claim as long as they are on
//! their way, even if nobody wants them any more. A slot whose bytes are on their way is not taken from whoever fetches them.

use std::collections::BTreeMap;
use std::ops::Range;

use afs_wire::ids::DataVersion;
use bytes::Bytes;

/// Bounds, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// For one window, but for what its reader waits for.
    pub window: u64,
    /// For all windows.
    pub all: u64,
}

/// The ranges of all windows.
#[derive(Default)]
pub(super) struct Slots {
    /// What each window has a version of.
    versions: BTreeMap<u64, DataVersion>,
    /// By window and start. Those of a window do not overlap.
    slots: BTreeMap<(u64, u64), Slot>,
    /// Bytes here, or on their way.
    used: u64,
    /// Of these, bytes on their way that nobody waits for yet.
    ahead: u64,
    /// Counts uses and claims.
    clock: u64,
}

struct Slot {
    range: Range<u64>,
    /// Number of the claim.
    claim: u64,
    used_at: u64,
    is_ahead: bool,
    /// `None`: on their way.
    bytes: Option<Bytes>,
}

/// Who reads: a window, the version in it, and the position.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub window: u64,
    pub version: DataVersion,
    pub at: u64,
}

impl Reader {
    fn is_behind(self, window: u64, slot: &Slot) -> bool {
        window == self.window && slot.range.end <= self.at
    }
}

/// A range that is to be fetched.
pub(super) struct Order {
    pub window: u64,
    pub version: DataVersion,
    pub claim: u64,
    pub range: Range<u64>,
    pub is_ahead: bool,
}

impl Slots {
    /// What the window has of a version at a position: the bytes from there to the end of their range, or (`None` in it) a range on its
    /// way. What it has of another version is dropped.
    pub fn at(&mut self, reader: Reader) -> Option<Option<Bytes>> {
        let Reader { window, version, at } = reader;
        if self.versions.get(&window).is_some_and(|of| *of != version) {
            self.close(window);
        }
        self.versions.insert(window, version);
        self.clock += 1;
        let around = self.slots.range_mut((window, 0)..=(window, at)).next_back();
        let (_, slot) = around.filter(|(_, slot)| slot.range.end > at)?;
        slot.used_at = self.clock;
        Some(slot.bytes.as_ref().map(|bytes| bytes.slice((at - slot.range.start) as usize..)))
    }

    /// Drops a window. What is on its way stays charged until it has come.
    pub fn close(&mut self, window: u64) {
        self.versions.remove(&window);
        let starts: Vec<u64> = self.of(window).map(|slot| slot.range.start).collect();
        starts.into_iter().for_each(|start| self.drop_slot((window, start)));
    }

    /// Orders the missing part of a range around the position that a reader waits for. `None`: all memory is taken by what other
    /// readers wait for.
    pub fn order(&mut self, reader: Reader, range: Range<u64>, bounds: Bounds) -> Option<Order> {
        let range = self.free_around(reader, reader.at, range)?;
        let bytes = length(&range);
        while self.of_window(reader.window) + bytes > bounds.window && self.drop_own(reader).is_some() {}
        while self.used + bytes > bounds.all {
            self.drop_oldest(reader, true)?;
        }
        Some(self.add(reader, range, false))
    }

    /// Orders a range that a reader at a position will want next, if there is memory for it: its windows' share, of which half may be
    /// on its way, and of all memory half. The rest is for those who wait.
    pub fn order_ahead(&mut self, reader: Reader, range: Range<u64>, bounds: Bounds) -> Option<Order> {
        let range = self.free_around(reader, range.start, range)?;
        let bytes = length(&range);
        let in_use = self.versions.keys().filter(|window| self.of(**window).next().is_some()).count().max(1);
        let share = bounds.window.min(bounds.all / in_use as u64);
        let ahead = self.of(reader.window).filter(|slot| slot.is_ahead && slot.bytes.is_none());
        let own_ahead: u64 = ahead.map(|slot| length(&slot.range)).sum();
        if own_ahead + bytes > share / 2 || self.ahead + bytes > bounds.all / 2 {
            return None;
        }
        while self.of_window(reader.window) + bytes > share {
            self.drop_behind(reader)?;
        }
        while self.used + bytes > bounds.all {
            self.drop_oldest(reader, false)?;
        }
        Some(self.add(reader, range, true))
    }

    fn add(&mut self, reader: Reader, range: Range<u64>, is_ahead: bool) -> Order {
        let (Reader { window, version, .. }, bytes) = (reader, length(&range));
        self.clock += 1;
        let claim = self.clock;
        let slot = Slot { range: range.clone(), claim, used_at: claim, is_ahead, bytes: None };
        self.slots.insert((window, range.start), slot);
        self.used += bytes;
        self.ahead += if is_ahead { bytes } else { 0 };
        Order { window, version, claim, range, is_ahead }
    }

    /// The bytes of an order have come, all of them, or (`None`) will not come.
    pub fn end(&mut self, order: &Order, came: Option<Bytes>) {
        let (place, bytes) = ((order.window, order.range.start), length(&order.range));
        self.ahead -= if order.is_ahead { bytes } else { 0 };
        let slot = self.slots.get_mut(&place).filter(|slot| slot.claim == order.claim);
        match (slot, came) {
            (Some(slot), Some(came)) => slot.bytes = Some(came),
            (slot, _) => {
                if slot.is_some() {
                    self.slots.remove(&place);
                }
                self.used -= bytes;
            }
        }
    }

    /// The part of a range around a position that is neither here nor on its way. `None`: the position is.
    fn free_around(&self, reader: Reader, at: u64, range: Range<u64>) -> Option<Range<u64>> {
        let Reader { window, version, .. } = reader;
        self.versions.get(&window).filter(|of| **of == version)?;
        let before = self.slots.range((window, 0)..=(window, at)).next_back();
        let after = self.slots.range((window, at)..=(window, u64::MAX)).next();
        let start = range.start.max(before.map_or(0, |(_, slot)| slot.range.end));
        let free = start..range.end.min(after.map_or(u64::MAX, |(_, slot)| slot.range.start));
        free.contains(&at).then_some(free)
    }

    fn of(&self, window: u64) -> impl Iterator<Item = &Slot> {
        self.slots.range((window, 0)..=(window, u64::MAX)).map(|(_, slot)| slot)
    }

    fn of_window(&self, window: u64) -> u64 {
        self.of(window).map(|slot| length(&slot.range)).sum()
    }

    /// Drops what a reader at a position has left behind, the farthest first.
    fn drop_behind(&mut self, reader: Reader) -> Option<()> {
        self.drop_first(|window, slot| reader.is_behind(window, slot).then_some(slot.range.start))
    }

    /// The same, or else what the reader has not used for longest.
    fn drop_own(&mut self, reader: Reader) -> Option<()> {
        self.drop_behind(reader)
            .or_else(|| self.drop_first(|window, slot| (window == reader.window).then_some(slot.used_at)))
    }

    /// Drops what has not been used for longest in any window; what the reader has before it, last, or not at all.
    fn drop_oldest(&mut self, reader: Reader, own_too: bool) -> Option<()> {
        self.drop_first(|window, slot| {
            let is_before = window == reader.window && !reader.is_behind(window, slot);
            (own_too || !is_before).then_some((is_before, slot.used_at))
        })
    }

    /// Drops the first range, in this order, of those that are here and have a place in it.
    fn drop_first<T: Ord>(&mut self, order: impl Fn(u64, &Slot) -> Option<T>) -> Option<()> {
        let here = self.slots.iter().filter(|(_, slot)| slot.bytes.is_some());
        let (_, place) = here.filter_map(|(place, slot)| Some((order(place.0, slot)?, *place))).min()?;
        self.drop_slot(place);
        Some(())
    }

    fn drop_slot(&mut self, place: (u64, u64)) {
        if let Some(slot) = self.slots.remove(&place).filter(|slot| slot.bytes.is_some()) {
            self.used -= length(&slot.range);
        }
    }

    /// Bytes here, or on their way.
    pub fn used(&self) -> u64 {
        self.used
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}
