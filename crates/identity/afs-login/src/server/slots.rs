//! Count-min sketch of failed attempts: a fixed number of slots, of which a keyed hash chooses one in each of several
//! rows. The least of a source's counters is its count, so a source is delayed for the failures of other sources only
//! where it shares a slot with them in every row.

/// Rows, each with its own part of the slots and of the hash.
const ROWS: usize = 3;
/// Bits of the hash from one row to the next.
const ROW_BITS: usize = 21;

/// Longest wait between two attempts, in seconds.
const WAIT_MAX: u64 = 60;
/// Seconds without an attempt after which all failures are dropped.
pub(super) const FORGET: u64 = 1800;
/// Failures counted beyond the free ones: as many as increase the delay, so that it decreases as soon as possible.
const BEYOND_MAX: u32 = 8;

/// Slots of one kind, and the number of free failures in each.
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: u32,
    /// Seconds after which one failure expires while attempts continue, times `free`; 0 is never.
    drain: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    failures: u32,
    /// Seconds of the monotonic clock.
    last: u64,
}

impl Slots {
    /// `count` slots, at least one in each row.
    pub(super) fn new(count: usize, free: u32) -> Self {
        Self { slots: vec![Slot::default(); count.max(ROWS)], free, drain: 0 }
    }

    /// The free failures expire evenly over `seconds`.
    pub(super) fn draining(mut self, seconds: u64) -> Self {
        self.drain = seconds;
        self
    }

    pub(super) fn may_try(&self, hash: u64, now: u64) -> bool {
        self.indexes(hash).any(|index| {
            let slot = self.slots.get(index).copied().unwrap_or_default();
            let beyond = self.left(slot, now).saturating_sub(self.free);
            let wait =
                if beyond == 0 { 0 } else { 1u64.checked_shl(beyond - 1).unwrap_or(WAIT_MAX).min(WAIT_MAX) };
            now >= slot.last.saturating_add(wait)
        })
    }

    pub(super) fn count(&mut self, hash: u64, now: u64) {
        for index in self.indexes(hash) {
            let Some(slot) = self.slots.get(index).copied() else { continue };
            let left = self.left(slot, now);
            // A partly expired failure continues to expire from the last whole one on.
            let last = if self.drain > 0 && left == slot.failures && left > 0 { slot.last } else { now };
            let failures = (left + 1).min(self.free + BEYOND_MAX);
            if let Some(slot) = self.slots.get_mut(index) {
                *slot = Slot { failures, last };
            }
        }
    }

    pub(super) fn refund(&mut self, hash: u64) {
        for index in self.indexes(hash) {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.failures = slot.failures.saturating_sub(1);
            }
        }
    }

    /// Failures that have not expired.
    fn left(&self, slot: Slot, now: u64) -> u32 {
        let since = now.saturating_sub(slot.last);
        if since >= FORGET {
            return 0;
        }
        let drained = match self.drain {
            0 => 0,
            drain => since * u64::from(self.free) / drain,
        };
        slot.failures.saturating_sub(u32::try_from(drained).unwrap_or(u32::MAX))
    }

    /// The slots of a hash, one in each row.
    fn indexes(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let row_len = self.slots.len() / ROWS;
        // Far below the size of either type.
        (0..ROWS).map(move |row| row * row_len + (hash >> (row * ROW_BITS)) as usize % row_len)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}
