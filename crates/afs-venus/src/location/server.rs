//! A file server: its addresses, and which calls it does not know.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
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
    /// Whether it has no data path.
    pub no_data_path: UnknownCall,
    /// Whether it does not tell of a file that it has only grown.
    pub no_growth: UnknownCall,
    /// Whether it tells no layouts.
    pub no_layouts: UnknownCall,
    /// Whether it renews no layouts.
    pub no_renewals: UnknownCall,
    /// Whether it gives one layout per call.
    pub single_layouts_only: UnknownCall,
    /// Whether it tells no lists of chunks.
    pub no_layout_lists: UnknownCall,
    /// Whether it gives no rooms at drives.
    pub no_rooms: UnknownCall,
    /// Whether it gives no rooms whose chunks it commands.
    pub no_commanded_stores: UnknownCall,
    /// Whether it gives rooms at one drive alone.
    pub single_rooms_only: UnknownCall,
    /// Whether it takes no room back before its time.
    pub no_room_ends: UnknownCall,
    /// Whether it gives one capability of the data path per call, and none with statuses.
    pub single_capabilities_only: UnknownCall,
    /// Whether it takes one change per call.
    pub single_changes_only: UnknownCall,
    /// Whether it lends no directories.
    pub no_leases: UnknownCall,
    /// Whether it lends a new directory after as many changes as any other.
    pub lends_no_new: UnknownCall,
    /// Whether it lends nothing with a lease later.
    pub lends_once: UnknownCall,
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
    pub(super) unique: AtomicU32,
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
            no_data_path: UnknownCall::default(),
            no_growth: UnknownCall::default(),
            no_layouts: UnknownCall::default(),
            no_renewals: UnknownCall::default(),
            single_layouts_only: UnknownCall::default(),
            no_layout_lists: UnknownCall::default(),
            no_rooms: UnknownCall::default(),
            no_commanded_stores: UnknownCall::default(),
            single_rooms_only: UnknownCall::default(),
            no_room_ends: UnknownCall::default(),
            single_capabilities_only: UnknownCall::default(),
            single_changes_only: UnknownCall::default(),
            no_leases: UnknownCall::default(),
            lends_no_new: UnknownCall::default(),
            lends_once: UnknownCall::default(),
            has_fine_times: AtomicBool::new(false),
            old_store_acl: AtomicBool::new(false),
            unique: AtomicU32::new(0),
            addresses: Mutex::new(Vec::new()),
        }
    }

    /// Permits one more call that fetches ahead of a reader; `None` if there are enough of them.
    pub fn permit_ahead(&self) -> Option<sync::OwnedSemaphorePermit> {
        self.ahead.clone().try_acquire_owned().ok()
    }

    /// Whether it has said that it has no data path, and is not asked again yet.
    pub fn has_no_data_path(&self, now: Instant) -> bool {
        self.no_data_path.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it tells no layouts of files, and is not asked again yet.
    pub fn has_no_layouts(&self, now: Instant) -> bool {
        self.no_layouts.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for the capabilities of several layouts again in one call.
    pub fn may_renew_layouts(&self, now: Instant) -> bool {
        !self.no_renewals.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for the layouts of several files in one call.
    pub fn may_give_layouts_in_bulk(&self, now: Instant) -> bool {
        !self.single_layouts_only.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for the layout of a long range as a list.
    pub fn may_list_layouts(&self, now: Instant) -> bool {
        !self.no_layout_lists.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it gives no rooms at drives, and is not asked again yet.
    pub fn has_no_rooms(&self, now: Instant) -> bool {
        self.no_rooms.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it commands no stores, and is not asked again yet.
    pub fn commands_no_stores(&self, now: Instant) -> bool {
        self.no_commanded_stores.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it gives rooms at one drive alone, and is not asked again yet.
    pub fn gives_rooms_at_one_drive(&self, now: Instant) -> bool {
        self.single_rooms_only.is_noted(now, self.reset.get())
    }

    /// Whether it has said that it takes no room back, and is not asked again yet.
    pub fn keeps_rooms(&self, now: Instant) -> bool {
        self.no_room_ends.is_noted(now, self.reset.get())
    }

    /// Whether it is worth asking for several capabilities in one call, or for one together with statuses.
    pub fn may_give_capabilities_in_bulk(&self, now: Instant) -> bool {
        !self.single_capabilities_only.is_noted(now, self.reset.get())
    }

    /// Whether it is worth sending several changes in one call.
    pub fn may_take_lists(&self, now: Instant) -> bool {
        !self.single_changes_only.is_noted(now, self.reset.get())
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
