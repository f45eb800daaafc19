//! Lists of changes of one volume: one commit for as many of them as succeed.

use std::sync::Arc;

use crate::error::VolumeError;
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
    /// and visible, which they become together: after a crash all of them are there or none.
    ///
    /// # Errors
    /// As [`Volume::update`], for the list as a whole; those of `apply` are in the outcome.
    pub async fn update_list<C, T, F>(
        self: &Arc<Self>,
        changes: Vec<C>,
        mut apply: F,
    ) -> Result<ListOutcome<T>, VolumeError>
    where
        C: Send + 'static,
        T: Send + 'static,
        F: FnMut(&mut VolumeTx<'_, '_>, C) -> Result<T, VolumeError> + Send + 'static,
    {
        let (store, id) = (self.store().clone(), self.id());
        let list = self.store().kv.update(move |txn| {
            VolumeTx::begin(txn, &store, id)?.check_takes_changes()?;
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
            Ok(ListOutcome { done, failed })
        });
        Ok(list.await?)
    }
}
