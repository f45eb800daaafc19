//! A file server: its addresses, and which calls it does not know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use afs_rpc::{Instant, sync};
use afs_wire::ids::Uuid;
use parking_lot::Mutex;

use super::address::{Address, RANK_USUAL};
use super::refused_tokens::RefusedTokens;
use super::server_clock::ServerClock;
use super::unknown_call::UnknownCall;
use crate::key::CellIndex;
use crate::location::errors::ServerErrors;
use crate::promise::ServerReset;

/// Most calls in progress at one server that fetch ahead of readers. All of them may be one user's, and more calls than a user's
/// connection has channels wait for each other: this is half of the channels ([`afs_rpc::Limits::connections`], of four each).
const AHEAD_MAX: usize = 16;

/// A file server.
pub(crate) struct Server {
    pub cell: CellIndex,
    pub uuid: Option<Uuid>,
    /// Number of the last break of all promises of this server.
    pub reset: ServerReset,
    /// True if it does not know the calls with 64-bit lengths.
    pub small_files_only: AtomicBool,
    /// True if it does not know InlineBulkStatus.
    pub plain_bulk_only: AtomicBool,
    /// True if it stores one range of a file per call.
    pub single_ranges_only: AtomicBool,
    /// Whether it is of another maker: it knows none of our calls (docs/protocol/extensions.md).
    pub no_calls_of_ours: UnknownCall,
    /// Whether it has no data path.
    pub no_data_path: UnknownCall,
    /// Whether it lends a new directory after as many changes as any other.
    pub lends_no_new: UnknownCall,
    /// True if it keeps times of files to the nanosecond.
    pub has_fine_times: AtomicBool,
    /// True if it does not know StoreACL by its new number.
    pub old_store_acl: AtomicBool,
    /// Random number that determines the order of equally near servers.
    pub draw: u64,
    /// Calls in progress that fetch ahead of readers.
    ahead: Arc<sync::Semaphore>,
    /// Tokens that it takes for expired.
    pub refused_tokens: RefusedTokens,
    /// Its clock.
    pub clock: ServerClock,
    /// Its last errors.
    pub errors: ServerErrors,
    /// Version of the list of its addresses.
    pub(super) unique: AtomicU64,
    pub(super) addresses: Mutex<Vec<Arc<Address>>>,
}

impl Server {
    pub(super) fn new(cell: CellIndex, uuid: Option<Uuid>, draw: u64) -> Self {
        Server {
            cell,
            uuid,
            draw,
            ahead: Arc::new(sync::Semaphore::new(AHEAD_MAX)),
            clock: ServerClock::default(),
            refused_tokens: RefusedTokens::default(),
            errors: ServerErrors::default(),
            reset: ServerReset::default(),
            small_files_only: AtomicBool::new(false),
            plain_bulk_only: AtomicBool::new(false),
            single_ranges_only: AtomicBool::new(false),
            no_calls_of_ours: UnknownCall::default(),
            no_data_path: UnknownCall::default(),
            lends_no_new: UnknownCall::default(),
            has_fine_times: AtomicBool::new(false),
            old_store_acl: AtomicBool::new(false),
            unique: AtomicU64::new(0),
            addresses: Mutex::new(Vec::new()),
        }
    }

    /// Permits one more call that fetches ahead of a reader; `None` if there are enough of them.
    pub fn permit_ahead(&self) -> Option<sync::OwnedSemaphorePermit> {
        self.ahead.clone().try_acquire_owned().ok()
    }

    /// Whether it is worth asking for what only servers of ours do: it has not said lately that it does not know such a call.
    pub fn may_know_our_calls(&self, now: Instant) -> bool {
        !self.no_calls_of_ours.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it has no data path, and is not asked again yet.
    pub fn has_no_data_path(&self, now: Instant) -> bool {
        self.no_data_path.is_noted(now, self.reset.get())
    }

    /// Its addresses, by rank, and in each rank the nearest first.
    pub fn addresses(&self) -> Vec<Arc<Address>> {
        let mut addresses = self.addresses.lock().clone();
        addresses.sort_by_key(|address| (address.rank(), address.round_trip()));
        addresses
    }

    /// The lowest rank of its addresses.
    pub fn rank(&self) -> u16 {
        self.addresses.lock().iter().map(|address| address.rank()).min().unwrap_or(RANK_USUAL)
    }

    /// Shortest round-trip time that was measured to any of its addresses.
    pub fn round_trip(&self) -> Option<Duration> {
        self.addresses.lock().iter().filter_map(|address| address.measured_round_trip()).min()
    }

    /// Shortest round-trip time to any of its addresses, including penalties.
    pub fn distance(&self, now: Instant) -> Duration {
        let addresses = self.addresses.lock();
        let distances = addresses.iter().map(|address| address.round_trip() + address.penalty(now));
        distances.min().unwrap_or(Duration::MAX)
    }

    /// How long it has not replied, if all of its addresses are unreachable.
    pub fn unreachable_for(&self, now: Instant) -> Option<Duration> {
        let addresses = self.addresses.lock();
        let first = addresses.iter().map(|address| address.absence.since()).min()?;
        let is_unreachable = addresses.iter().all(|address| address.is_unreachable());
        is_unreachable.then(|| now.saturating_since(first))
    }

    /// Remaining time for which waiting is worthwhile; see [`super::Absence::remaining_wait`].
    pub fn remaining_wait(&self, now: Instant, most: Duration) -> Duration {
        let addresses = self.addresses.lock();
        addresses.iter().map(|address| address.absence.remaining_wait(now, most)).max().unwrap_or_default()
    }

    /// True if all of its addresses are unreachable.
    pub fn is_unreachable(&self) -> bool {
        self.addresses.lock().iter().all(|address| address.is_unreachable())
    }
}
