//! After the loss of a lease: what the server does not have is made by single calls in the order in which it was decided, under their rules.
//! The data of a file goes with its creation or before its next name, so that others see no name without its data. What cannot be made is
//! logged; the data of a file is set aside for its user, and the next close or fsync of an open file returns the error.

mod data;
mod giving_up;
mod looking;
mod looks;
mod names;
mod objects;
mod state;

use std::sync::Arc;

use afs_wire::fs::{self, Change, ChangeReply};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;

use super::may_be_sent_again;
use crate::calls::CallOutcome;
use crate::error::{ErrorKind, Result, VenusError};
use crate::leases::{Decided, Entry, Lease};
use crate::venus::Venus;
use looks::Looks;
use state::Loss;
pub(super) use state::Unstored;

impl Venus {
    /// Makes what waits by single calls, in order.
    ///
    /// # Errors
    /// The server cannot be reached: the rest is made later.
    pub(super) async fn make_good(&self, lease: &Arc<Lease>, unstored: &mut Vec<Unstored>) -> Result<()> {
        let dirs = lease.journal(|journal| journal.directories());
        // Before, since nothing else may end the promises of the looks; and after, since what was read meanwhile may be older.
        dirs.values().for_each(|dir| self.forget_copy(dir));
        let made = self.make_all_good(&mut Loss { lease, unstored, looks: Looks::default() }).await;
        dirs.values().for_each(|dir| self.forget_copy(dir));
        made
    }

    async fn make_all_good(&self, loss: &mut Loss<'_>) -> Result<()> {
        let lease = loss.lease;
        while let Some(entry) = lease.journal(|journal| journal.first()) {
            let me = self.as_user(entry.user);
            match Box::pin(me.make_alone(loss, &entry)).await {
                Ok(()) => {}
                Err(error) if may_be_sent_again(&error) => return Err(error),
                Err(error) => me.is_given_up(lease, &entry, &error).await,
            }
            self.forget_decided(lease, &entry);
            lease.journal(|journal| journal.first_is_over());
        }
        Ok(())
    }

    async fn make_alone(&self, loss: &mut Loss<'_>, entry: &Entry) -> Result<()> {
        let lease = loss.lease;
        if lease.fates(|fates| fates.was_not_made(entry.vnode.key)) {
            return Ok(());
        }
        let change = match &entry.decided {
            Decided::Change(change) => change,
            Decided::Store(store) => return self.store_whole_alone(loss, entry, store).await,
        };
        match change {
            Change::CreateFile(small) => self.create_alone(loss, entry, small).await,
            Change::MakeDir(call) => self.make_dir_alone(loss, entry, call).await,
            Change::Symlink(call) => self.symlink_alone(loss, entry, call).await,
            Change::Store(call) => self.store_small_alone(loss, entry, call).await,
            Change::StoreStatus(call) => {
                let call = fs::StoreStatus { fid: lease.in_place_of(call.fid), ..call.clone() };
                self.made_alone(loss, &[], call).await.map(drop)
            }
            Change::RemoveFile(call) => {
                let was_not_linked = |key| lease.fates(|fates| fates.was_not_linked(key));
                if let Some(kept) = entry.unlinked.filter(|key| was_not_linked(*key)) {
                    return Err(VenusError::new(ErrorKind::Exists, "Link").of(kept.fid));
                }
                let named = (lease.in_place_of(call.dir), call.name.clone());
                self.remove_alone(loss, entry, named, |dir, name| fs::RemoveFile { dir, name }).await
            }
            Change::RemoveDir(call) => {
                let named = (lease.in_place_of(call.dir), call.name.clone());
                self.remove_alone(loss, entry, named, |dir, name| fs::RemoveDir { dir, name }).await
            }
            Change::Rename(call) => self.rename_alone(loss, entry, call).await,
            Change::Link(call) => self.link_alone(loss, entry, call).await,
        }
    }

    /// Makes a change by its single call, after which the copies of these directories are those of before.
    async fn made_alone<R: Request + Clone>(
        &self,
        loss: &mut Loss<'_>,
        dirs: &[Fid],
        call: R,
    ) -> Result<R::Reply>
    where
        R::Reply: Send,
    {
        let call = Box::pin(self.calls.call(&self.context, &loss.lease.volume, call));
        let outcome: CallOutcome<R::Reply> = call.await;
        if outcome.maybe_executed {
            loss.lease.journal(|journal| journal.note_unanswered());
        }
        if outcome.maybe_executed || outcome.result.is_err() {
            dirs.iter().for_each(|dir| loss.looks.forget(*dir));
        }
        outcome.result.map(|answered| answered.value)
    }

    /// Makes a change for which there is no single call: as a list of it alone.
    async fn listed_alone(&self, loss: &mut Loss<'_>, dirs: &[Fid], change: Change) -> Result<ChangeReply> {
        let changes = fs::Changes::first_of(std::iter::once(change));
        let lease = loss.lease;
        let answered =
            self.made_alone(loss, dirs, fs::ChangeList { volume: lease.volume.id, changes }).await?;
        let refused = VenusError::new(ErrorKind::of_abort(answered.code), "ChangeList").of(lease.dir.fid);
        answered.done.into_vec().pop().ok_or(refused)
    }
}
