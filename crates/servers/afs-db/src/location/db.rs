//! Interface of the location database, independent of its store.

use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;

use afs_wire::ids::{UnixSeconds, Uuid, VolumeId, VolumeKind};

use crate::{EntryUpdate, Filter, Located, LocationError, Page, Proposal, Release, Server, ServerSlot};

/// A result that may have to wait for a disk or another machine.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, LocationError>> + Send + 'a>>;

/// The key with which a tool refers to an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntryKey {
    /// By the id of one kind, or of any kind.
    Id(VolumeId, Option<VolumeKind>),
    /// By name, with or without suffix; only digits are an id.
    Name(String),
}

/// Numbers that describe the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Totals {
    /// Number of entries.
    pub entries: u32,
    /// The next unused volume id.
    pub next_volume_id: VolumeId,
}

/// The location database of a cell: sites of volumes, and addresses of servers.
///
/// Every change is durable when its future resolves, and is atomic. The rules and the codes are those of
/// docs/protocol vldb.md "4. Semantics".
pub trait LocationDb: Send + Sync + 'static {
    /// The entry with an id or name.
    fn entry(&self, key: EntryKey) -> Pending<'_, Located>;

    /// Creates an entry.
    fn create(&self, proposal: Proposal) -> Pending<'_, ()>;

    /// Replaces a whole entry, then releases its lock as requested.
    fn replace(
        &self,
        id: VolumeId,
        kind: Option<VolumeKind>,
        proposal: Proposal,
        release: Release,
    ) -> Pending<'_, ()>;

    /// Changes some fields of an entry, then releases its lock as requested.
    fn update(&self, key: EntryKey, update: EntryUpdate, release: Release) -> Pending<'_, ()>;

    /// Exchanges the names of two entries, each with the id of any of its volumes.
    fn exchange_names(&self, one: VolumeId, other: VolumeId) -> Pending<'_, ()>;

    /// Deletes an entry.
    fn delete(&self, id: VolumeId, kind: Option<VolumeKind>) -> Pending<'_, ()>;

    /// Locks an entry for one operation.
    fn lock(
        &self,
        id: VolumeId,
        kind: Option<VolumeKind>,
        operation: u32,
        now: UnixSeconds,
    ) -> Pending<'_, ()>;

    /// Releases the lock of an entry.
    fn unlock(&self, id: VolumeId, kind: Option<VolumeKind>, release: Release) -> Pending<'_, ()>;

    /// Allocates `count` consecutive volume ids and returns the first; 0 only reads the counter.
    fn new_volume_ids(&self, count: u32) -> Pending<'_, VolumeId>;

    /// The first entry after a row number; 0 is the start.
    fn next_entry(&self, row: u32) -> Pending<'_, Option<Located>>;

    /// At most `limit` matching entries from row `start` on. The work is bounded: continue while
    /// [`Page::next`] is `Some`.
    fn list(&self, filter: Filter, start: u32, limit: usize) -> Pending<'_, Page>;

    /// Registers a server's addresses under its permanent name.
    fn register(&self, uuid: Uuid, addresses: Vec<Ipv4Addr>) -> Pending<'_, ServerSlot>;

    /// Changes or removes an address of an unregistered server.
    fn change_address(&self, from: Ipv4Addr, to: Ipv4Addr) -> Pending<'_, ()>;

    /// All servers, by slot.
    fn servers(&self) -> Pending<'_, Vec<Server>>;

    /// The server with an address.
    fn server_by_address(&self, address: Ipv4Addr) -> Pending<'_, Option<Server>>;

    /// The server registered with a permanent name.
    fn server_by_uuid(&self, uuid: Uuid) -> Pending<'_, Option<Server>>;

    /// Totals of the database.
    fn totals(&self) -> Pending<'_, Totals>;
}
