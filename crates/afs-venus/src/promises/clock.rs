//! What time it is, and that nothing is relied on that was promised before the machine was suspended.
//!
//! Servers may have changed, broken or forgotten promises while nobody here could hear it. What was promised is asked for
//! again; what is cached stays, and counts when the server says that it is the newest.

use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::Instant;

use crate::promises::Promises;

/// How much later than asked for a sleep may end, and how far the clocks may drift apart meanwhile, before it counts as a
/// jump.
pub(crate) const SLACK: Duration = Duration::from_secs(30);

impl Promises {
    /// Says what time it is. A caller that comes before the watch after a suspend relies on nothing either.
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

    /// The watch has looked at the clocks.
    pub fn clocks_read(&self, now: Instant) {
        self.clocks_read_at.store(now.as_nanos(), Ordering::SeqCst);
    }

    /// Ends all promises, and tells of everything that is held.
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
