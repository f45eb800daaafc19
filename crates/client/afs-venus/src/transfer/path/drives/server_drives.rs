//! What is known of the drives of one file server: layouts, connections, failures.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use afs_datapath::MINIMUM_SIZE;
use afs_rpc::Instant;
use afs_rpc::sync::Notify;
use afs_wire::ids::{DataVersion, Fid};
use parking_lot::Mutex;

use super::super::connect::IDLE;
use super::super::fallback::Fallback;
use super::super::server::Common;
use super::buckets::Buckets;
use super::companions::Companions;
use super::layouts::{FIRST_WINDOW, Layouts};
use super::links::DriveLinks;
use super::sites::Sites;
use super::storing::Rooms;
use crate::api::ExplainedDrive;
use crate::identity::TokenId;
use crate::location::Server;

/// The drives of one server.
pub(crate) struct ServerDrives {
    pub(super) server: Arc<Server>,
    pub(super) common: Arc<Common>,
    pub(super) layouts: Mutex<Layouts>,
    pub(super) companions: Mutex<Companions>,
    pub(super) sites: Mutex<Sites>,
    pub(super) links: Mutex<DriveLinks>,
    pub(super) buckets: Mutex<Buckets>,
    pub(super) rooms: Mutex<Rooms>,
    /// A layout, a capability or a connection has come, or will not come.
    pub(super) changed: Notify,
    /// Counts capabilities, which the connections know by their numbers.
    pub(super) given: AtomicU64,
}

impl ServerDrives {
    pub fn new(server: Arc<Server>, common: Arc<Common>) -> Self {
        ServerDrives {
            server,
            common,
            layouts: Mutex::default(),
            companions: Mutex::default(),
            sites: Mutex::default(),
            links: Mutex::default(),
            buckets: Mutex::default(),
            rooms: Mutex::default(),
            changed: Notify::new(),
            given: AtomicU64::new(0),
        }
    }

    pub fn now(&self) -> Instant {
        self.common.env.now()
    }

    /// Whether any drive is connected, or a bucket was read a moment ago.
    pub fn is_in_use(&self) -> bool {
        let now = self.now();
        self.links.lock().is_any_open() || self.buckets.lock().is_any_in_use(now, IDLE)
    }

    /// Statuses of files of a directory have come, each with the version and the length.
    pub fn statuses_came(
        &self,
        directory: (TokenId, Fid),
        files: impl IntoIterator<Item = (Fid, DataVersion, u64)>,
    ) {
        if !self.is_in_use() {
            return;
        }
        let least = self.common.config.minimum_size.unwrap_or(MINIMUM_SIZE).max(1);
        let lengths = least..=FIRST_WINDOW;
        let files = files.into_iter().filter(|(_, _, length)| lengths.contains(length));
        self.companions.lock().came(directory, files.map(|(fid, version, _)| (fid, version)));
    }

    /// The drives that are known, for a user.
    pub fn explained(&self) -> Vec<ExplainedDrive> {
        self.links.lock().explained(self.now())
    }

    /// Counts what was not read or stored at a drive.
    pub(super) fn fallback(&self, why: Fallback) -> Fallback {
        tracing::debug!(reason = why.name(), "not moved at a drive");
        self.common.counters.drive_fallback(why.name());
        why
    }
}
