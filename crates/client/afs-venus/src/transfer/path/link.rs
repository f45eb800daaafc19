//! Connection to a drive, with the capabilities presented on it.
//!
//! It is shared by all users who were told of the same drive with the same key. Each transfer names a capability, which was
//! looked up by its user's token: a connection permits nothing by itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use afs_datapath::session::{Client, Error, Handle, Lost};
use afs_rpc::Instant;
use afs_rpc::sync::{OwnedSemaphorePermit, Semaphore};
use parking_lot::Mutex;

use super::capabilities::Given;
use super::offer::Offer;
use crate::location::Address;

/// Most transfers in progress on one connection; each holds about 1.25 MiB at most.
pub(super) const TRANSFERS_MAX: usize = 16;
/// Most stores in rooms in progress on one connection; each holds six parts of a mebibyte at most.
const STORES_MAX: usize = 16;
/// Most chunks of stores on their way at a time; drives take so many of one address.
const CHUNKS_MAX: usize = 16;
/// Most capabilities presented on one connection; drives take 1,024.
const HANDLES_MAX: usize = 256;
/// How many transfers in a row may end without success before the path counts as failed.
const FRUITLESS_MAX: u32 = 8;

/// An open connection.
pub(super) struct Link {
    pub offer: Offer,
    pub session: Client,
    transfers: Arc<Semaphore>,
    /// Of their own, because a store is much longer than a read.
    stores: Arc<Semaphore>,
    chunks: Semaphore,
    /// By the number of the capability.
    handles: Mutex<BTreeMap<u64, Presented>>,
    used_at: AtomicU64,
    fruitless: AtomicU32,
    proved: AtomicBool,
    failed: AtomicBool,
    /// The address by whose path its segments are small.
    narrow: Option<Arc<Address>>,
}

/// A capability on a connection.
struct Presented {
    handle: Handle,
    ends: Instant,
    used: Instant,
}

impl Link {
    pub fn new(offer: Offer, session: Client, now: Instant) -> Link {
        Link {
            offer,
            session,
            transfers: Arc::new(Semaphore::new(TRANSFERS_MAX)),
            stores: Arc::new(Semaphore::new(STORES_MAX)),
            chunks: Semaphore::new(CHUNKS_MAX),
            handles: Mutex::default(),
            used_at: AtomicU64::new(now.as_nanos()),
            fruitless: AtomicU32::new(0),
            proved: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            narrow: None,
        }
    }

    /// The same, of which the segments are small as long as the path to this address is not known to carry large packets.
    pub fn narrow(self, narrow: Option<Arc<Address>>) -> Link {
        Link { narrow, ..self }
    }

    /// Begins a transfer; `None` if there are as many as may be.
    pub fn begin(&self, now: Instant) -> Option<OwnedSemaphorePermit> {
        self.used_at.store(now.as_nanos(), Ordering::Relaxed);
        self.transfers.clone().try_acquire_owned().ok()
    }

    /// Waits until a transfer may begin; `None` if the connection was given up meanwhile.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let permit = self.transfers.clone().acquire_owned().await.ok();
        permit.filter(|_| !self.failed.load(Ordering::Relaxed))
    }

    /// Begins a store in a room; `None` if there are as many as may be.
    pub fn begin_store(&self, now: Instant) -> Option<OwnedSemaphorePermit> {
        self.used_at.store(now.as_nanos(), Ordering::Relaxed);
        self.stores.clone().try_acquire_owned().ok()
    }

    /// Waits until a store may begin; `None` if the connection was given up meanwhile.
    pub async fn store_turn(&self) -> Option<OwnedSemaphorePermit> {
        let permit = self.stores.clone().acquire_owned().await.ok();
        permit.filter(|_| !self.failed.load(Ordering::Relaxed))
    }

    /// Sends a chunk of a store as soon as few enough are on their way. Who waits here holds nothing that these need.
    pub async fn with_chunk<T>(&self, send: impl Future<Output = T>) -> T {
        let _place = self.chunks.acquire().await;
        send.await
    }

    /// The handle of a capability, which is presented if it has not been.
    pub fn handle(&self, given: &Given, now: Instant) -> Result<Handle, Error> {
        let mut handles = self.handles.lock();
        if let Some(presented) = handles.get_mut(&given.number) {
            presented.used = now;
            return Ok(presented.handle.clone());
        }
        if handles.len() >= HANDLES_MAX {
            handles.retain(|_, presented| now < presented.ends);
        }
        if handles.len() >= HANDLES_MAX {
            let oldest = handles.iter().min_by_key(|(_, presented)| presented.used).map(|(key, _)| *key);
            oldest.map(|key| handles.remove(&key));
        }
        let handle = self.session.present(&given.capability, &given.secret)?;
        handles.insert(given.number, Presented { handle: handle.clone(), ends: given.ends, used: now });
        Ok(handle)
    }

    /// A capability is used no more.
    pub fn withdraw(&self, given: &Given) {
        self.handles.lock().remove(&given.number);
    }

    /// How many capabilities are presented.
    #[cfg(test)]
    pub fn presented(&self) -> usize {
        self.handles.lock().len()
    }

    /// A transfer has succeeded. Whether it is the first one.
    pub fn succeeded(&self) -> bool {
        self.fruitless.store(0, Ordering::Relaxed);
        !self.proved.swap(true, Ordering::Relaxed)
    }

    /// A transfer was declined. Whether there were too many of these in a row.
    pub fn was_fruitless(&self) -> bool {
        self.fruitless.fetch_add(1, Ordering::Relaxed) + 1 >= FRUITLESS_MAX
    }

    /// It has failed. Whether that is news: of several transfers that fail with it one counts.
    pub fn failed(&self) -> bool {
        !self.failed.swap(true, Ordering::Relaxed)
    }

    pub fn lost(&self) -> Option<Lost> {
        self.session.lost()
    }

    /// Whether it is to be used no more: it has ended, nothing was moved for so long, or its segments are smaller than they need be.
    pub fn is_over(&self, now: Instant, idle: Duration) -> bool {
        let is_small = self.narrow.as_ref().is_some_and(|address| address.narrow_path().is_none());
        self.lost().is_some() || is_small || self.is_idle(now, idle)
    }

    fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        let used_at = Instant::from_nanos(self.used_at.load(Ordering::Relaxed));
        let is_free = self.transfers.available_permits() == TRANSFERS_MAX
            && self.stores.available_permits() == STORES_MAX;
        is_free && now.saturating_since(used_at) >= idle
    }
}
