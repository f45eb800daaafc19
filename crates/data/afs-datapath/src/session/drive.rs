//! A drive: key, which can be exchanged, revocations, objects, limits, counters.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_env::sync::{Mutex, Notify};
use afs_env::{Instant, RepeatBounds, RepeatKind, Repeats};
use parking_lot::RwLock;

use super::admission::Admission;
use super::commands::{Collections, Deliveries};
use super::connection_table::ConnectionTable;
use super::counters::{Counters, Counts};
use super::{DriveLimits, Objects};
use crate::capability::{DriveKey, Refusal, Revocations};

/// What serves bytes by capability.
pub struct Drive {
    key: RwLock<Arc<DriveKey>>,
    /// One key is adopted at a time.
    pub(super) adopting: Mutex<()>,
    /// The generations of its groups.
    pub revocations: Revocations,
    pub(super) objects: Arc<dyn Objects>,
    pub(super) limits: DriveLimits,
    pub(super) counters: Counters,
    /// The refusals that are in the log.
    logged: parking_lot::Mutex<Repeats<Refusal>>,
    pub(super) admission: Arc<Admission>,
    pub(super) connections: Arc<ConnectionTable>,
    pub(super) deliveries: Deliveries,
    pub(super) collections: Collections,
    is_stopped: AtomicBool,
    stop: Notify,
}

impl Drive {
    /// A drive, which serves nothing before [`serve`](super::serve) or [`accept`](super::accept).
    #[must_use]
    pub fn new(
        key: DriveKey,
        revocations: Revocations,
        objects: Arc<dyn Objects>,
        limits: DriveLimits,
    ) -> Arc<Self> {
        let (admission, connections) = (Admission::new(&limits), ConnectionTable::new(&limits));
        let (deliveries, collections) = (Deliveries::new(), Collections::new());
        let (is_stopped, stop) = (AtomicBool::new(false), Notify::new());
        let (key, adopting) = (RwLock::new(Arc::new(key)), Mutex::new(()));
        Arc::new(Self {
            key,
            adopting,
            revocations,
            objects,
            limits,
            counters: Counters::default(),
            logged: parking_lot::Mutex::new(Repeats::new(LOGGED)),
            admission,
            connections,
            deliveries,
            collections,
            is_stopped,
            stop,
        })
    }

    /// The key that seals and checks its capabilities.
    #[must_use]
    pub fn key(&self) -> Arc<DriveKey> {
        self.key.read().clone()
    }

    /// Exchanges the key for one of another epoch. When this returns, nothing begins any more by what was sealed with the earlier
    /// one, and what is in progress ends before its next piece.
    pub fn replace_key(&self, key: DriveKey) {
        *self.key.write() = Arc::new(key);
        // Whoever compares the number of changes looks at the epoch too.
        self.revocations.revoke_all();
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            connected: self.connections.count(),
            in_progress: self.admission.count(),
            revocations: self.revocations.count(),
            ..self.counters.counts()
        }
    }

    /// Takes no more connections, and ends all that there are, with a goodbye. Does not wait for that.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.stop.notify_waiters();
    }

    /// Completes when the drive was stopped.
    pub(super) async fn stopped(&self) {
        let stop = self.stop.notified();
        if !self.is_stopped.load(Ordering::SeqCst) {
            stop.await;
        }
    }

    /// Counts and logs a refusal: of many for one reason the first in each window, with the number of all so far.
    pub(super) fn refuse(&self, peer: SocketAddr, refusal: Refusal, now: Instant) {
        let count = self.counters.refuse(refusal);
        if self.logged.lock().is_told(refusal, now) {
            tracing::info!(%peer, %refusal, count, "a capability was refused");
        }
    }
}

/// Refusals that are logged: 64 for each reason in ten minutes.
const LOGGED: RepeatBounds =
    RepeatBounds { window: Duration::from_secs(600), told: 64, kinds: Refusal::ALL.len() };

impl RepeatKind for Refusal {
    /// Each has a place.
    fn shared(&self) -> Self {
        *self
    }
}
