//! Watch of an unreachable address: one task probes it at growing intervals.

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;

use crate::calls::{Calls, Target};

/// First pause before an unreachable server is probed.
const PROBE_FIRST: Duration = Duration::from_millis(500);

impl Calls {
    /// Probes an unreachable address until it replies.
    pub(super) fn watch(&self, target: &Target) {
        if target.address.claim_watch() {
            let target = Target::anonymous(&target.server, target.address.clone());
            self.parts.env.spawn(Box::pin(watch_until_reachable(self.me.clone(), target)));
        }
    }
}

/// Probes at growing intervals until the address replies or no longer belongs to the server. Holds no reference while
/// it sleeps.
async fn watch_until_reachable(calls: Weak<Calls>, target: Target) {
    let mut pause = PROBE_FIRST;
    loop {
        let Some(me) = calls.upgrade() else { return };
        let (ended, sleep) = (me.ended.clone().notified_owned(), me.parts.env.sleep(me.with_jitter(pause)));
        pause = (pause * 2).min(me.limits.probe_down);
        drop(me);
        select(ended, sleep).await;
        let Some(me) = calls.upgrade().filter(|me| !me.is_closing()) else { return };
        let is_known = target.server.addresses().iter().any(|known| Arc::ptr_eq(known, &target.address));
        if is_known && target.address.is_unreachable() {
            me.probe_and_note(&target).await;
        }
        if is_known && target.address.is_unreachable() {
            continue;
        }
        target.address.end_watch();
        if !is_known || !target.address.claim_watch() {
            return;
        }
    }
}
