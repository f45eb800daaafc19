//! Lists of changes that were decided under a lease, sent in order and in time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;
use afs_wire::fs;

use super::may_be_sent_again;
use super::whole_stores::name_of_decided;
use crate::counters::count;
use crate::error::Result;
use crate::leases::{Lease, List};
use crate::venus::{Shared, Venus};

/// Longest time for which a change that was decided is not sent.
const AGE_MAX: Duration = Duration::from_secs(1);
/// Pause before a list that could not be sent is sent again.
const SEND_AGAIN: Duration = Duration::from_secs(5);

impl Venus {
    /// Sends what is in the journal of a lease when its oldest change is old enough, or when there is enough for a list.
    pub(super) fn send_soon(&self, lease: &Arc<Lease>) {
        if lease.begins_timing() {
            let (shared, lease) = (Arc::downgrade(&self.shared), lease.clone());
            self.env.spawn(Box::pin(Venus::send_in_time(shared, lease)));
        }
    }

    /// Holds no reference while it sleeps.
    async fn send_in_time(shared: Weak<Shared>, lease: Arc<Lease>) {
        let upgraded = || shared.upgrade().map(Venus::anonymous);
        let Some(mut pause) = upgraded().map(|venus| venus.until_due(&lease)) else { return };
        loop {
            let enough = lease.enough.notified();
            let Some(venus) = upgraded() else { return };
            let sleep = venus.env.sleep(pause);
            drop(venus);
            if !lease.journal(|journal| journal.is_due()) {
                select(enough, sleep).await;
            }
            let Some(venus) = upgraded() else { return };
            if venus.is_closing() {
                return;
            }
            let settled = venus.settle(&lease).await;
            if lease.ends_timing() {
                if lease.is_to_be_returned() {
                    venus.return_lease(&lease).await;
                }
                return;
            }
            pause = match settled {
                Ok(()) => venus.until_due(&lease),
                Err(error) => {
                    tracing::warn!(%error, "what was decided under a lease is sent later");
                    drop(venus);
                    Venus::pause(&shared, SEND_AGAIN).await;
                    Duration::ZERO
                }
            };
        }
    }

    async fn pause(shared: &Weak<Shared>, pause: Duration) {
        let sleep = shared.upgrade().map(|shared| shared.env.sleep(pause));
        if let Some(sleep) = sleep {
            sleep.await;
        }
    }

    fn until_due(&self, lease: &Lease) -> Duration {
        let oldest = lease.journal(|journal| journal.oldest());
        let age = oldest.map_or(Duration::ZERO, |since| self.now().saturating_since(since));
        AGE_MAX.saturating_sub(age)
    }

    /// Sends a list. It can be sent any number of times: the server makes it once.
    pub(super) async fn send_lease_list(&self, lease: &Arc<Lease>, list: &List) -> Result<()> {
        let me = self.as_user(list.user);
        list.entries.iter().for_each(|entry| self.counters.listed(name_of_decided(&entry.decided)));
        let (volume, series, number) = (lease.volume.id, lease.series(), list.number);
        let request = fs::ChangeList { volume, series, number, under_lease: true, changes: list.changes() };
        match self.calls.call(&me.context, &lease.volume, request).await.result {
            Ok(answered) => {
                me.list_answered(lease, list, &answered);
                me.evict_settled(&list.entries).await;
            }
            Err(error) if may_be_sent_again(&error) => return Err(error),
            // Nothing of it was made: a list that was made before is replied to, also after the end of its lease.
            Err(error) => {
                tracing::warn!(%error, dir = %lease.dir.fid, "a lease was lost: what was decided under it is made by single changes");
                self.lost(lease, None);
            }
        }
        Ok(())
    }

    pub(super) fn lost(&self, lease: &Lease, made: Option<usize>) {
        count(&self.counters.leases_lost);
        self.leases.was_in_vain(lease.dir);
        lease.lose(made);
    }
}
