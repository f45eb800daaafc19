//! Use counts of volumes: accesses of the day and of the previous days, and the last access (docs/protocol
//! volumes.md "4. Quotas and usage"). Counted in memory, written to the headers now and then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use afs_volume::VolumeHeader;
use afs_wire::ids::{UnixSeconds, VolumeId};
use parking_lot::RwLock;

const DAY: u32 = 86_400;

/// Accesses that are not yet in the volumes' headers.
#[derive(Default)]
pub(crate) struct VolumeUses {
    volumes: RwLock<BTreeMap<VolumeId, Arc<Counted>>>,
}

#[derive(Default)]
struct Counted {
    accesses: AtomicU32,
    last: AtomicU32,
}

/// The use counts of a volume at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UseNow {
    /// The last access.
    pub(crate) access_date: UnixSeconds,
    /// Accesses of the day.
    pub(crate) day: u32,
    /// Start of that day.
    pub(crate) day_began: UnixSeconds,
    /// Accesses of the seven days before, the latest first.
    pub(crate) week: [u32; 7],
}

impl VolumeUses {
    /// Counts a call on a volume.
    pub(crate) fn count(&self, volume: VolumeId, now: UnixSeconds) {
        let known = self.volumes.read().get(&volume).cloned();
        let counted = known.unwrap_or_else(|| {
            let mut volumes = self.volumes.write();
            volumes.entry(volume).or_default().clone()
        });
        counted.accesses.fetch_add(1, Ordering::Relaxed);
        counted.last.fetch_max(now.0, Ordering::Relaxed);
    }

    /// The use counts of a volume, with those not yet in its header.
    pub(crate) fn of(&self, header: &VolumeHeader, now: UnixSeconds) -> UseNow {
        let volumes = self.volumes.read();
        let counted = volumes.get(&header.id).map(|counted| (load(&counted.accesses), load(&counted.last)));
        UseNow::of(header).with(counted.unwrap_or_default(), now)
    }

    /// Restarts the counts of a volume whose header gets another id.
    pub(crate) fn restart(&self, volume: VolumeId) {
        let volumes = self.volumes.read();
        if let Some(counted) = volumes.get(&volume) {
            counted.accesses.store(0, Ordering::Relaxed);
        }
    }

    /// Takes the counts since the last time, of every volume that was used.
    pub(crate) fn take(&self) -> Vec<(VolumeId, (u32, u32))> {
        let taken = std::mem::take(&mut *self.volumes.write());
        taken.into_iter().map(|(volume, c)| (volume, (load(&c.accesses), load(&c.last)))).collect()
    }
}

fn load(counter: &AtomicU32) -> u32 {
    counter.load(Ordering::Relaxed)
}

impl UseNow {
    /// The counts in a header.
    pub(crate) fn of(header: &VolumeHeader) -> Self {
        UseNow {
            access_date: header.access_date,
            day: header.day_use,
            day_began: header.day_use_date,
            week: header.week_use,
        }
    }

    /// With further accesses, and the time of the last.
    pub(crate) fn with(mut self, (accesses, last): (u32, u32), now: UnixSeconds) -> Self {
        self.go_on(now);
        self.day = self.day.saturating_add(accesses);
        self.access_date = self.access_date.max(UnixSeconds(last));
        self
    }

    /// Moves past days into the week. Days begin at midnight UTC.
    fn go_on(&mut self, now: UnixSeconds) {
        let days = now.0.saturating_sub(self.day_began.0) / DAY;
        if self.day_began.0 != 0 && days == 0 {
            return;
        }
        for _ in 0..days.min(8) {
            self.week.rotate_right(1);
            self.week[0] = std::mem::take(&mut self.day);
        }
        self.day_began = UnixSeconds(now.0 - now.0 % DAY);
    }

    /// Writes the counts into a header.
    pub(crate) fn put(self, header: &mut VolumeHeader) {
        header.access_date = self.access_date;
        header.day_use = self.day;
        header.day_use_date = self.day_began;
        header.week_use = self.week;
    }

    /// Sum of the week's accesses.
    pub(crate) fn week_sum(&self) -> u32 {
        self.week.iter().fold(0, |sum, day| sum.saturating_add(*day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_counted_before_a_reset_are_not_added_afterwards() {
        let (uses, volume, now) = (VolumeUses::default(), VolumeId(7), UnixSeconds(1000 * DAY));
        uses.count(volume, now);
        uses.restart(volume);
        assert_eq!(uses.take(), [(volume, (0, now.0))]);
    }

    #[test]
    fn a_day_that_is_over_moves_into_the_week() {
        let noon = UnixSeconds(1000 * DAY + DAY / 2);
        let today = UseNow::default().with((5, noon.0), noon);
        assert_eq!((today.day, today.week_sum(), today.access_date), (5, 0, noon));
        let tomorrow = UnixSeconds(noon.0 + DAY);
        let then = today.with((2, tomorrow.0), tomorrow);
        assert_eq!((then.day, then.week), (2, [5, 0, 0, 0, 0, 0, 0]));
        let later = UnixSeconds(noon.0 + 3 * DAY);
        assert_eq!(then.with((0, 0), later).week, [0, 2, 5, 0, 0, 0, 0]);
        let long_after = then.with((0, 0), UnixSeconds(noon.0 + 100 * DAY));
        assert_eq!((long_after.day, long_after.week_sum(), long_after.access_date), (0, 0, tomorrow));
    }
}
