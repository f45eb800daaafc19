//! Lists of changes of one volume: one commit for as many of them as succeed, and for the row of their series.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::ids::Fid;

use crate::error::VolumeError;
use crate::series::{self, LastList, NumberedList};
use crate::store::Store;
use crate::tx::VolumeTx;
use crate::volume::Volume;

/// What became of a list of changes.
#[derive(Debug)]
pub struct ListOutcome<T> {
    /// The results of the changes that were made, in order.
    pub done: Vec<T>,
    /// Why the next one was not made, and none after it; `None` if all were.
    pub failed: Option<VolumeError>,
}

impl Volume {
    /// Makes changes one after the other until one fails, of which nothing remains. Resolves when those made are durable
    /// and visible, which they become together, and with them the row that the list was made: after a crash all of that is there or none.
    /// `object` is the object that a change made.
    ///
    /// If nothing was made, the number of the list is not used.
    ///
    /// # Errors
    /// As [`Volume::update`], for the list as a whole; those of `apply` are in the outcome. [`VolumeError::MadeBefore`] if it is the last one
    /// of its series; [`VolumeError::UnknownSeries`] if that is not known and this not the first; `Invalid` if it is not the next one.
    pub async fn update_list<C, T, F>(
        self: &Arc<Self>,
        list: NumberedList,
        changes: Vec<C>,
        mut apply: F,
        object: fn(&T) -> Option<Fid>,
    ) -> Result<ListOutcome<T>, VolumeError>
    where
        C: Send + 'static,
        T: Send + 'static,
        F: FnMut(&mut VolumeTx<'_, '_>, C) -> Result<T, VolumeError> + Send + 'static,
    {
        let (store, id) = (self.store().clone(), self.id());
        let made = self.store().kv.update(move |txn| {
            VolumeTx::begin(txn, &store, id)?.check_takes_changes()?;
            series::check_next(txn, id, &list)?;
            let (mut done, mut failed) = (Vec::with_capacity(changes.len()), None);
            for change in changes {
                let made = txn.part(|txn| {
                    let mut tx = VolumeTx::begin(txn, &store, id)?;
                    let result = apply(&mut tx, change)?;
                    tx.finish()?;
                    Ok(result)
                });
                match made {
                    Ok(result) => done.push(result),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            let outcome = ListOutcome { done, failed };
            if !outcome.done.is_empty() {
                let last = last_list(&list, &store, &outcome, object);
                series::put(txn, id, list.series, &last)?;
            }
            Ok(outcome)
        });
        Ok(made.await?)
    }
}

fn last_list<T>(
    list: &NumberedList,
    store: &Store,
    outcome: &ListOutcome<T>,
    object: fn(&T) -> Option<Fid>,
) -> LastList {
    let made = outcome.done.iter().map(|done| object(done).unwrap_or_default());
    LastList {
        number: list.number,
        sum: list.sum,
        sender: list.sender.clone(),
        at: store.time().seconds(),
        made: made.map(|fid| (fid.vnode, fid.unique)).collect(),
        code: outcome.failed.as_ref().map_or(AbortCode::OK, VolumeError::code),
    }
}
