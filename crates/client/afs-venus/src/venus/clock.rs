//! Clock task: detects a suspend of the machine, or a jump of a clock.

use std::sync::Weak;

use afs_rpc::EnvExt;

use crate::promises::SLACK;
use crate::venus::{Shared, Venus};

impl Venus {
    /// Reads the clocks at intervals until Venus shuts down. Holds no reference while it sleeps.
    pub(super) async fn watch_clocks(shared: Weak<Shared>) {
        let upgraded = || shared.upgrade().map(Venus::anonymous);
        loop {
            let Some(venus) = upgraded() else { return };
            if venus.is_closing() {
                return;
            }
            let tick = venus.limits.maintenance;
            let (now, wall) = (venus.env.now(), venus.wall());
            venus.promises.clocks_read(now);
            let sleep = venus.env.sleep(tick);
            drop(venus);
            sleep.await;
            let Some(venus) = upgraded() else { return };
            let passed = venus.env.now().saturating_since(now);
            let by_wall = i64::from(venus.wall().0) - i64::from(wall.0);
            let drift = by_wall.abs_diff(passed.as_secs() as i64);
            if passed > tick + SLACK || drift > SLACK.as_secs() {
                venus.promises.distrust_all();
                venus.extend_locks().await;
            }
        }
    }
}
