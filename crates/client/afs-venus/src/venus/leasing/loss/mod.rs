//! After the loss of a lease: what the server does not have is made in the order in which it was decided, each change as a list of it alone in
//! the series of the lease, and so once. The data of a file goes with its creation or before its next name, so that others see no name without
//! its data. What cannot be made is logged; the data of a file is set aside for its user, and the next close or fsync of an open file returns
//! the error.

mod choosing;
mod data;
mod foreign;
mod giving_up;
mod looking;
mod looks;
mod noting;
mod state;

use std::sync::Arc;

use afs_rpc::EnvExt;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Change, ChangeReply, SeriesId};

use super::may_be_sent_again;
use crate::error::{ErrorKind, Result, VenusError};
use crate::leases::{Decided, Entry, Lease};
use crate::venus::Venus;
use crate::venus::once::is_of_the_series;
use looks::Looks;
use state::Loss;
pub(super) use state::Unstored;

/// How often the names of one change are looked at because they were gone when it came.
const LOOKS_MAX: u32 = 8;

impl Venus {
    /// Makes what waits, in order.
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
        if loss.lease.fates(|fates| fates.was_not_made(entry.vnode.key)) {
            return Ok(());
        }
        let decided = match &entry.decided {
            Decided::Change(change) => change,
            Decided::Store(store) => return self.store_whole_alone(loss, entry, store).await,
        };
        let mut gone = Ok(());
        for _ in 0..LOOKS_MAX {
            let sent = loss.lease.journal(|journal| journal.alone());
            let change = match sent {
                Some(alone) => alone.change.clone(),
                None => match self.chosen(loss, entry, decided).await? {
                    Some(change) => change,
                    None => return Ok(()),
                },
            };
            match self.make_once(loss, entry, &change).await {
                Ok(reply) => {
                    noting::made(loss, entry, &change, &reply);
                    return Ok(());
                }
                Err(error) if may_be_sent_again(&error) => return Err(error),
                // Others were faster.
                Err(error) if error.kind == ErrorKind::NotFound && is_of_a_name(&change) => gone = Err(error),
                Err(error) => return self.refused(loss, entry, &change, error).await,
            }
        }
        gone
    }

    /// Makes a change once, however often it is sent.
    async fn make_once(&self, loss: &mut Loss<'_>, entry: &Entry, change: &Change) -> Result<ChangeReply> {
        choosing::has_its_data(loss.lease, entry, change)?;
        let made = self.send_alone(loss, change).await;
        if made.is_err() {
            change.fids().into_iter().for_each(|dir| loss.looks.forget(dir));
        }
        match made {
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                self.make_by_a_plain_call(loss, entry, change).await
            }
            made => made,
        }
    }

    /// Sends the change that waits in front as a list of it alone, the same each time; in another series if the server does not know this one, or
    /// counts otherwise: then it has made nothing of it.
    async fn send_alone(&self, loss: &Loss<'_>, change: &Change) -> Result<ChangeReply> {
        match self.send_alone_as_next(loss.lease, change).await {
            Err(error) if is_of_the_series(&error) => {
                loss.lease.begin_series(SeriesId(self.env.random_u64()));
                self.send_alone_as_next(loss.lease, change).await
            }
            made => made,
        }
    }

    async fn send_alone_as_next(&self, lease: &Lease, change: &Change) -> Result<ChangeReply> {
        let alone = lease.journal(|journal| match journal.alone() {
            Some(alone) => alone,
            None => journal.send_alone(change.clone()),
        });
        let list = fs::ChangeList {
            volume: lease.volume.id,
            series: lease.series(),
            number: alone.number,
            under_lease: false,
            changes: fs::Changes::first_of([alone.change.clone().into()]),
        };
        let answered = match self.calls.call(&self.context, &lease.volume, list).await.result {
            Err(error) if may_be_sent_again(&error) => return Err(error),
            Err(error) => {
                lease.journal(|journal| journal.alone_is_over(false));
                return Err(error);
            }
            Ok(answered) => answered.value,
        };
        lease.journal(|journal| journal.alone_is_over(!answered.done.is_empty()));
        let refused = VenusError::new(ErrorKind::of_abort(answered.code), "ChangeList").of(lease.dir.fid);
        answered.done.into_vec().pop().ok_or(refused)
    }
}

/// Whether a change takes a name from an object.
fn is_of_a_name(change: &Change) -> bool {
    matches!(change, Change::RemoveFile(_) | Change::RemoveDir(_) | Change::Rename(_))
}
