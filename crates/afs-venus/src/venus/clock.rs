//! Notices that the machine was suspended, or that a clock has jumped: nothing that servers promised before is relied on.
//!
//! Servers may have changed, broken or forgotten promises while nobody here could hear it. What was promised is asked for
//! again; what is cached stays, and counts when the server says that it is the newest.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::{EnvExt, Instant};

use crate::venus::{Shared, Venus};

/// How much later than asked for a sleep may end, and how far the clocks may drift apart meanwhile, before it counts as a
/// jump.
const SLACK: Duration = Duration::from_secs(30);

impl Venus {
    /// Looks at the clocks, until Venus shuts down. Holds no reference while it sleeps.
    pub(super) async fn watch_clocks(shared: Weak<Shared>) {
        let upgraded = || Some(Venus { shared: shared.upgrade()?, who: None });
        loop {
            let Some(venus) = upgraded() else { return };
            if venus.is_closing() {
                return;
            }
            let tick = venus.limits.maintenance;
            let (now, wall) = (venus.env.now(), venus.wall());
            venus.awake_at.store(now.as_nanos(), Ordering::SeqCst);
            let sleep = venus.env.sleep(tick);
            drop(venus);
            sleep.await;
            let Some(venus) = upgraded() else { return };
            let passed = venus.env.now().saturating_since(now);
            let by_wall = i64::from(venus.wall().0) - i64::from(wall.0);
            let drift = by_wall.abs_diff(passed.as_secs() as i64);
            if passed > tick + SLACK || drift > SLACK.as_secs() {
                venus.doubt_all();
                venus.extend_locks().await;
            }
        }
    }

    /// Says what time it is. Who comes before the watch after a suspend relies on nothing either.
    pub(super) fn now(&self) -> Instant {
        let now = self.env.now();
        let awake_at = self.awake_at.load(Ordering::SeqCst);
        let late = Instant::from_nanos(awake_at) + self.limits.maintenance + SLACK;
        if awake_at != 0 && now > late {
            self.awake_at.store(now.as_nanos(), Ordering::SeqCst);
            self.end_all_promises();
        }
        now
    }

    /// Ends all promises, and tells the sink of everything it holds.
    fn doubt_all(&self) {
        tracing::info!(
            "the machine was suspended, or a clock has jumped: what servers promised is asked for again"
        );
        self.end_all_promises();
        for volume in self.volumes.all() {
            self.tell_volume(&volume);
        }
    }

    fn end_all_promises(&self) {
        let serial = self.breaks.next();
        for server in self.servers.all() {
            server.reset.set(serial);
        }
        self.told.fetch_add(1, Ordering::SeqCst);
    }
}
