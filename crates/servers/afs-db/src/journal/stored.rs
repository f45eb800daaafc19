//! The journal over a store of rows.

use afs_wire::ids::UnixSeconds;
use afs_wire::operations::SnapshotSchedule;

use super::{Draft, Holder, Kept, OperationsDb, Pending, rules, schedule};
use crate::Store;

/// The journal as rows of a [`Store`]. A handle: clones share the store.
#[derive(Clone)]
pub struct StoredOperationsDb<S>(S);

impl<S: Store> StoredOperationsDb<S> {
    /// The journal in a store, which may contain the databases too.
    pub fn over(store: S) -> Self {
        StoredOperationsDb(store)
    }
}

impl<S: Store> OperationsDb for StoredOperationsDb<S> {
    fn begin(&self, draft: Draft, now: UnixSeconds) -> Pending<'_, Kept> {
        self.0.change(move |rows| rules::begin(rows, draft.clone(), now))
    }

    fn step(
        &self,
        id: u64,
        holding: u64,
        step: String,
        detail: Vec<u8>,
        now: UnixSeconds,
    ) -> Pending<'_, ()> {
        self.0.change(move |rows| rules::step(rows, id, holding, step.clone(), detail.clone(), now))
    }

    fn heartbeat(&self, id: u64, holding: u64, now: UnixSeconds) -> Pending<'_, ()> {
        self.0.change(move |rows| rules::heartbeat(rows, id, holding, now))
    }

    fn end(&self, id: u64, holding: u64) -> Pending<'_, ()> {
        self.0.change(move |rows| rules::end(rows, id, holding))
    }

    fn list(&self, after: u64, limit: usize) -> Pending<'_, Vec<Kept>> {
        self.0.read(move |rows| rules::list(rows, after, limit))
    }

    fn schedule(&self) -> Pending<'_, Option<SnapshotSchedule>> {
        self.0.read(schedule::get)
    }

    fn set_schedule(&self, schedule: SnapshotSchedule) -> Pending<'_, ()> {
        self.0.change(move |rows| schedule::set(rows, &schedule))
    }

    fn take_over(&self, id: u64, holder: Holder, now: UnixSeconds) -> Pending<'_, Kept> {
        self.0.change(move |rows| rules::take_over(rows, id, holder.clone(), now))
    }
}
