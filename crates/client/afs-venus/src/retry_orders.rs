//! Table of the stores of unsaved data that users have ordered: one for each file, with the outcome of those that have just ended. Makes no calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::Instant;
use afs_rpc::sync::Notify;
use parking_lot::Mutex;

use crate::api::{TokenOwner, Unsettled};
use crate::identity::User;
use crate::key::Key;

/// For how long the outcome of a store is kept for the next request.
const KEPT: Duration = Duration::from_secs(10);

type Outcome = Result<(), Unsettled>;

/// The stores in progress, by the number of the data, and those that have just ended.
#[derive(Default)]
pub(crate) struct RetryOrders(Mutex<BTreeMap<u64, Arc<Order>>>);

/// A store, and its outcome.
pub(crate) struct Order {
    /// Who wrote the data.
    writer: User,
    pub key: Key,
    /// With the time of the end.
    outcome: Mutex<Option<(Outcome, Instant)>>,
    ended: Notify,
}

impl Order {
    /// Records the outcome, and tells it to all that wait for it.
    pub fn end(&self, outcome: Outcome, now: Instant) {
        *self.outcome.lock() = Some((outcome, now));
        self.ended.notify_waiters();
    }

    fn has_ended_before(&self, then: Instant) -> bool {
        self.outcome.lock().as_ref().is_some_and(|(_, ended)| *ended < then)
    }

    /// The outcome, once there is one.
    pub async fn outcome(&self) -> Outcome {
        loop {
            let ended = self.ended.notified();
            if let Some((outcome, _)) = &*self.outcome.lock() {
                return outcome.clone();
            }
            ended.await;
        }
    }
}

impl RetryOrders {
    /// The store of this data that is in progress, or has just ended; of one's own data, or for root of all.
    pub fn get(&self, owner: TokenOwner, number: u64, now: Instant) -> Option<Arc<Order>> {
        let mut orders = self.0.lock();
        orders.retain(|_, order| !order.has_ended_before(Instant(now.0.saturating_sub(nanos(KEPT)))));
        let may_know =
            |order: &&Arc<Order>| owner.uid() == 0 || order.writer.is_some_and(|it| it.uid() == owner.uid());
        orders.get(&number).filter(may_know).cloned()
    }

    /// The store of this data, and whether it is to be begun.
    pub fn begin(&self, writer: User, number: u64, key: Key) -> (Arc<Order>, bool) {
        let mut orders = self.0.lock();
        let is_new = !orders.contains_key(&number);
        let new = || Arc::new(Order { writer, key, outcome: Mutex::new(None), ended: Notify::new() });
        (orders.entry(number).or_insert_with(new).clone(), is_new)
    }

    /// Its outcome was told.
    pub fn forget(&self, number: u64) {
        self.0.lock().remove(&number);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
