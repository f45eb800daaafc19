//! Counters of failed attempts, in a fixed number of slots that a keyed hash chooses.

/// Longest wait between two attempts, in seconds.
const WAIT_MAX: u64 = 60;
/// After so many seconds without an attempt everything is forgotten.
pub(super) const FORGET: u64 = 1800;
/// Failures counted beyond the free ones: no higher than the wait grows, so that the way back is as short.
const BEYOND_MAX: u32 = 8;

/// Slots of one kind, and how many failures are free in each.
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: u32,
    /// Seconds after which one failure is forgotten while attempts go on, times `free`; 0 is never.
    drain: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    failures: u32,
    /// Seconds of the monotonic clock.
    last: u64,
}

impl Slots {
    pub(super) fn new(count: usize, free: u32) -> Self {
        Self { slots: vec![Slot::default(); count.max(1)], free, drain: 0 }
    }

    /// The free failures come back evenly over `seconds`.
    pub(super) fn draining(mut self, seconds: u64) -> Self {
        self.drain = seconds;
        self
    }

    pub(super) fn may_try(&self, hash: u64, now: u64) -> bool {
        let slot = self.slots.get(self.place(hash)).copied().unwrap_or_default();
        let beyond = self.left(slot, now).saturating_sub(self.free);
        let wait =
            if beyond == 0 { 0 } else { 1u64.checked_shl(beyond - 1).unwrap_or(WAIT_MAX).min(WAIT_MAX) };
        now >= slot.last.saturating_add(wait)
    }

    pub(super) fn count(&mut self, hash: u64, now: u64) {
        let (place, most) = (self.place(hash), self.free + BEYOND_MAX);
        let Some(slot) = self.slots.get(place).copied() else { return };
        let left = self.left(slot, now);
        // What has not drained yet goes on to drain from the last whole failure on.
        let last = if self.drain > 0 && left == slot.failures && left > 0 { slot.last } else { now };
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Slot { failures: (left + 1).min(most), last };
        }
    }

    pub(super) fn refund(&mut self, hash: u64) {
        let place = self.place(hash);
        if let Some(slot) = self.slots.get_mut(place) {
            slot.failures = slot.failures.saturating_sub(1);
        }
    }

    /// Failures that still count.
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

    fn place(&self, hash: u64) -> usize {
        // Far below the size of either type.
        (hash % self.slots.len() as u64) as usize
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}
