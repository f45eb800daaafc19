//! Tasks that wait for a busy volume.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use afs_wire::error::AbortCode;
use afs_wire::ids::VolumeId;
use parking_lot::{Mutex, MutexGuard};

use super::{Site, VolumeState, VolumeStates};
use crate::partitions::Partitions;

/// The waiting tasks.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Waiters>);

#[derive(Default)]
struct Waiters {
    next: u64,
    wakers: BTreeMap<u64, Waker>,
}

/// One waiting task. A dropped one leaves nothing behind, however long the state lasts.
struct Waiter<'a> {
    waiting: &'a Waiting,
    number: u64,
}

impl Waiting {
    fn enter(&self) -> Waiter<'_> {
        let mut waiters = self.lock();
        waiters.next += 1;
        Waiter { waiting: self, number: waiters.next }
    }

    /// Wakes all tasks after a change of state.
    pub(super) fn wake(&self) {
        let all = std::mem::take(&mut self.lock().wakers);
        all.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.0.lock()
    }
}

impl Waiter<'_> {
    fn ask_to_be_woken(&self, waker: &Waker) {
        self.waiting.lock().wakers.insert(self.number, waker.clone());
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.waiting.lock().wakers.remove(&self.number);
    }
}

impl VolumeStates {
    /// Whether a call would be refused only because the volume service holds the volume for a while.
    pub(crate) fn is_busy(&self, partitions: &Partitions, id: VolumeId, change: bool) -> bool {
        if !self.any() {
            return false;
        }
        match self.serving(partitions, id, change) {
            Err(AbortCode::VBUSY) => true,
            // Taken out of service by the holder of a transaction; its next state follows when that ends.
            Err(AbortCode::VOFFLINE) => partitions
                .iter()
                .any(|(partition, _)| self.get(Site { volume: id, partition }) == Some(VolumeState::Busy)),
            _ => false,
        }
    }

    /// Ready when [`VolumeStates::is_busy`] is false.
    pub(crate) async fn calm(&self, partitions: &Partitions, id: VolumeId, change: bool) {
        let waiter = self.waiting.enter();
        poll_fn(|cx| {
            // Registered first: any change from here on wakes the task.
            waiter.ask_to_be_woken(cx.waker());
            if self.is_busy(partitions, id, change) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }
}
