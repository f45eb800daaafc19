//! Clock of promises: after a suspend of the machine all earlier promises are void.
//!
//! Servers may have changed, broken or lost promises while this client could not be notified. Status is fetched again;
//! cached data is kept, and is valid if the server still has its version.

use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::Instant;

use crate::promises::Promises;

/// How late a sleep may end, and how far the clocks may drift apart meanwhile, before that counts as a jump.
pub(crate) const SLACK: Duration = Duration::from_secs(30);

impl Promises {
    /// The present time. After a suspend it ends all promises, also for a caller that comes before the clock task.
    pub fn now(&self) -> Instant {
        let now = self.parts.env.now();
        let clocks_read_at = self.clocks_read_at.load(Ordering::SeqCst);
        let late = Instant::from_nanos(clocks_read_at) + self.tick + SLACK;
        if clocks_read_at != 0 && now > late {
            self.clocks_read(now);
            self.end_all();
        }
        now
    }

    /// Records that the clock task has read the clocks.
    pub fn clocks_read(&self, now: Instant) {
        self.clocks_read_at.store(now.as_nanos(), Ordering::SeqCst);
    }

    /// Ends all promises and invalidates all objects.
    pub fn distrust_all(&self) {
        tracing::info!(
            "the machine was suspended, or a clock has jumped: what servers promised is asked for again"
        );
        self.end_all();
        self.parts.location.volumes().all().iter().for_each(|volume| self.invalidate_volume(volume));
    }

    fn end_all(&self) {
        let serial = self.breaks.next();
        self.parts.location.servers().all().iter().for_each(|server| server.reset.set(serial));
        self.parts.kernel.note_unpromised();
    }
}
