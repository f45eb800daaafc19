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

/// All windows, by number.
#[derive(Default)]
pub(super) struct Slots {
    windows: BTreeMap<u64, OfWindow>,
    /// Bytes here, or on their way.
    used: u64,
    /// Of these, bytes on their way that nobody waits for yet.
    ahead: u64,
    /// Counts uses and claims.
    clock: u64,
}

/// What is in one window. The ranges do not overlap.
struct OfWindow {
    version: DataVersion,
    slots: BTreeMap<u64, Slot>,
}

struct Slot {
    end: u64,
    /// Number of the claim.
    claim: u64,
    used_at: u64,
    is_ahead: bool,
    /// `None`: on their way.
    bytes: Option<Bytes>,
}

/// What is known of a position.
pub(super) enum At {
    /// The bytes from there to the end of their range.
    Here(Bytes),
    Coming,
    Missing,
}

/// Who reads: a window, the version in it, and the position.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    pub window: u64,
    pub version: DataVersion,
    pub at: u64,
}

/// A range that is to be fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Order {
    pub window: u64,
    pub claim: u64,
    pub range: Range<u64>,
    pub is_ahead: bool,
}

impl Slots {
    /// What the window has of a version at a position. What it has of another one is dropped.
    pub fn at(&mut self, reader: Reader) -> At {
        let Reader { window, version, at } = reader;
        if self.windows.get(&window).is_some_and(|of| of.version != version) {
            self.close(window);
        }
        self.clock += 1;
        let now = self.clock;
        let of = self.windows.entry(window).or_insert(OfWindow { version, slots: BTreeMap::new() });
        let around = of.slots.range_mut(..=at).next_back();
        let Some((start, slot)) = around.filter(|(_, slot)| slot.end > at) else { return At::Missing };
        slot.used_at = now;
        match &slot.bytes {
            Some(bytes) => At::Here(bytes.slice((at - start) as usize..)),
            None => At::Coming,
        }
    }

    /// Drops a window. What is on its way stays charged until it has come.
    pub fn close(&mut self, window: u64) {
        let Some(of) = self.windows.remove(&window) else { return };
        self.used -= of.slots.iter().filter(|(_, slot)| slot.bytes.is_some()).map(len).sum::<u64>();
    }

    /// Orders the missing part of a range around the position that a reader waits for. `None`: all memory is taken by what other
    /// readers wait for.
    pub fn order(&mut self, reader: Reader, range: Range<u64>, bounds: Bounds) -> Option<Order> {
        let range = self.free_around(reader, reader.at, range)?;
        let bytes = range.end - range.start;
        while self.of_window(reader.window) + bytes > bounds.window && self.drop_from(reader) {}
        while self.used + bytes > bounds.all {
            self.drop_oldest(reader, true)?;
        }
        self.add(reader.window, range, false)
    }

    /// Orders a range that a reader at a position will want next, if there is memory for it: its windows' share, of which half may be
    /// on its way, and of all memory half. The rest is for those who wait.
    pub fn order_ahead(&mut self, reader: Reader, range: Range<u64>, bounds: Bounds) -> Option<Order> {
        let range = self.free_around(reader, range.start, range)?;
        let bytes = range.end - range.start;
        let in_use = self.windows.values().filter(|of| !of.slots.is_empty()).count().max(1) as u64;
        let share = bounds.window.min(bounds.all / in_use);
        let own_ahead = self.ahead_of(reader.window);
        if own_ahead + bytes > share / 2 || self.ahead + bytes > bounds.all / 2 {
            return None;
        }
        while self.of_window(reader.window) + bytes > share {
            self.drop_behind(reader)?;
        }
        while self.used + bytes > bounds.all {
            self.drop_oldest(reader, false)?;
        }
        self.add(reader.window, range, true)
    }

    fn add(&mut self, window: u64, range: Range<u64>, is_ahead: bool) -> Option<Order> {
        let bytes = range.end - range.start;
        self.clock += 1;
        let claim = self.clock;
        let slot = Slot { end: range.end, claim, used_at: claim, is_ahead, bytes: None };
        self.windows.get_mut(&window)?.slots.insert(range.start, slot);
        self.used += bytes;
        self.ahead += if is_ahead { bytes } else { 0 };
        Some(Order { window, claim, range, is_ahead })
    }

    /// The bytes of an order have come, all of them, or (`None`) will not come.
    pub fn end(&mut self, order: &Order, came: Option<Bytes>) {
        let bytes = order.range.end - order.range.start;
        self.ahead -= if order.is_ahead { bytes } else { 0 };
        let start = order.range.start;
        let slots = self.windows.get_mut(&order.window).map(|of| &mut of.slots);
        let is_order = |slots: &&mut BTreeMap<u64, Slot>| {
            slots.get(&start).is_some_and(|slot| slot.claim == order.claim)
        };
        let mut slots = slots.filter(is_order);
        if let (Some(slot), Some(came)) = (slots.as_mut().and_then(|slots| slots.get_mut(&start)), &came) {
            slot.bytes = Some(came.clone());
            return;
        }
        if let Some(slots) = slots {
            slots.remove(&start);
        }
        self.used -= bytes;
    }

    /// The part of a range around a position that is neither here nor on its way. `None`: the position is.
    fn free_around(&self, reader: Reader, at: u64, range: Range<u64>) -> Option<Range<u64>> {
        let of = self.windows.get(&reader.window).filter(|of| of.version == reader.version)?;
        let slots = &of.slots;
        let before = slots.range(..=at).next_back().map_or(0, |(_, slot)| slot.end);
        let after = slots.range(at..).next().map_or(u64::MAX, |(start, _)| *start);
        let free = range.start.max(before)..range.end.min(after);
        free.contains(&at).then_some(free)
    }

    fn of_window(&self, window: u64) -> u64 {
        self.windows.get(&window).map_or(0, |of| of.slots.iter().map(len).sum())
    }

    fn ahead_of(&self, window: u64) -> u64 {
        let slots = self.windows.get(&window).into_iter().flat_map(|of| &of.slots);
        slots.filter(|(_, slot)| slot.is_ahead && slot.bytes.is_none()).map(len).sum()
    }

    /// Drops what a reader at a position has left behind, the farthest first.
    fn drop_behind(&mut self, reader: Reader) -> Option<()> {
        let slots = &self.windows.get(&reader.window)?.slots;
        let is_behind = |(_, slot): &(&u64, &Slot)| slot.end <= reader.at && slot.bytes.is_some();
        let start = slots.iter().find(is_behind).map(|(start, _)| *start)?;
        self.drop_slot(reader.window, start);
        Some(())
    }

    /// The same, or else what the reader has not used for longest. Says whether there was anything.
    fn drop_from(&mut self, reader: Reader) -> bool {
        if self.drop_behind(reader).is_some() {
            return true;
        }
        let slots = self.windows.get(&reader.window).into_iter().flat_map(|of| &of.slots);
        let here = slots.filter(|(_, slot)| slot.bytes.is_some());
        let oldest = here.min_by_key(|(_, slot)| slot.used_at).map(|(start, _)| *start);
        oldest.map(|start| self.drop_slot(reader.window, start)).is_some()
    }

    /// Drops what has not been used for longest in any window; what the reader has before it, last, or not at all.
    fn drop_oldest(&mut self, reader: Reader, own_too: bool) -> Option<()> {
        let is_before = |window: u64, slot: &Slot| window == reader.window && slot.end > reader.at;
        let slots_of = |(window, of): (&u64, &OfWindow)| {
            let window = *window;
            let keyed = move |(start, slot): (&u64, &Slot)| {
                ((is_before(window, slot), slot.used_at), window, *start, slot.bytes.is_some())
            };
            of.slots.iter().map(keyed).collect::<Vec<_>>()
        };
        let all = self.windows.iter().flat_map(slots_of);
        let may_go = all.filter(|((is_before, _), .., is_here)| *is_here && (own_too || !is_before));
        let (_, window, start, _) = may_go.min()?;
        self.drop_slot(window, start);
        Some(())
    }

    fn drop_slot(&mut self, window: u64, start: u64) {
        if let Some(slot) = self.windows.get_mut(&window).and_then(|of| of.slots.remove(&start)) {
            self.used -= slot.end - start;
        }
    }

    /// Bytes here, or on their way.
    pub fn used(&self) -> u64 {
        self.used
    }
}

fn len((start, slot): (&u64, &Slot)) -> u64 {
    slot.end - start
}
