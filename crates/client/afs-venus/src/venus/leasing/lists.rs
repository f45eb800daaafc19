//! Lists of changes that were decided under a lease, sent in order and in time.

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::select;
use afs_wire::fs;

use super::may_be_sent_again;
use super::whole_stores::name_of_decided;
use crate::counters::count;
use crate::error::{ErrorKind, Result, VenusError};
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
        let request = fs::LeaseList {
            dir: lease.dir.fid,
            lease: lease.id,
            number: list.number,
            changes: list.changes(),
        };
        let outcome = self.calls.call(&me.context, &lease.volume, request).await;
        if outcome.maybe_executed {
            lease.journal(|journal| journal.note_unanswered());
        }
        match outcome.result {
            Ok(answered) => {
                me.list_answered(lease, list, &answered);
                me.evict_settled(&list.entries).await;
            }
            Err(error) if may_be_sent_again(&error) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, dir = %lease.dir.fid, "a lease was lost: what was decided under it is made by single calls");
                me.list_refused(lease, list, &error).await?;
            }
        }
        Ok(())
    }

    /// The server knows no such list. One that was started again may have made it before, when the same packet came for the first time. A
    /// number that it does not take is the one refusal that a list made before cannot bring.
    async fn list_refused(&self, lease: &Lease, list: &List, error: &VenusError) -> Result<()> {
        let may_be_made = error.kind != ErrorKind::Invalid;
        let made = if may_be_made { self.made_of_list(lease, list).await? } else { 0 };
        let is_unanswered = lease.journal(|journal| journal.is_unanswered());
        self.lost(lease, made);
        if may_be_made && (made > 0 || is_unanswered || lease.is_forgotten()) {
            lease.journal(|journal| journal.doubt(list.entries.len().saturating_sub(made)));
        }
        Ok(())
    }

    /// How many of the first changes of a list to which no reply came were made, as far as objects show it that only the list makes, or versions
    /// of files that it stores, which others can have changed only after it was lost. Of those behind them nothing is known.
    async fn made_of_list(&self, lease: &Lease, list: &List) -> Result<usize> {
        let mut made = 0;
        for traces in list.traces().chunks(fs::FIDS_MAX) {
            let request =
                fs::InlineBulkStatus { fids: fs::Fids::first_of(traces.iter().map(|trace| trace.fid)) };
            match self.calls.call(&self.context, &lease.volume, request).await.result {
                Ok(answered) => {
                    let statuses = traces.iter().zip(answered.value.statuses.iter());
                    let shown = statuses.filter(|(trace, status)| trace.is_shown_by(status));
                    made = shown.map(|(trace, _)| trace.changes).max().unwrap_or(made);
                }
                Err(error) if may_be_sent_again(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(made)
    }

    pub(super) fn lost(&self, lease: &Lease, made: usize) {
        count(&self.counters.leases_lost);
        self.leases.was_in_vain(lease.dir);
        lease.lose(made);
    }
}
