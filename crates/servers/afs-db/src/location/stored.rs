//! The location database over a store of rows.

use std::net::Ipv4Addr;

use afs_wire::ids::{UnixSeconds, Uuid, VolumeId, VolumeKind};

use super::{entries, list, lock, servers, update, volume_ids};
use crate::import::Merged;
use crate::import::location::{self as import, ImportLocations, Part};
use crate::{
    EntryKey, EntryUpdate, Filter, Located, LocationDb, LocationError, Page, Pending, Proposal, Release,
    Rows, Server, ServerSlot, Store, Totals,
};

/// A location database whose rows are in a [`Store`]. A handle: clones share the store.
#[derive(Clone)]
pub struct StoredLocationDb<S>(S);

impl<S: Store> StoredLocationDb<S> {
    /// The database in a store, which may contain the others too.
    pub fn over(store: S) -> Self {
        StoredLocationDb(store)
    }
}

impl<S: Store> LocationDb for StoredLocationDb<S> {
    fn entry(&self, key: EntryKey) -> Pending<'_, Located> {
        self.0.read(move |rows| entries::locate(rows, find(rows, &key)?))
    }

    fn create(&self, proposal: Proposal) -> Pending<'_, ()> {
        self.0.change(move |rows| entries::create(rows, &proposal))
    }

    fn replace(
        &self,
        id: VolumeId,
        kind: Option<VolumeKind>,
        proposal: Proposal,
        release: Release,
    ) -> Pending<'_, ()> {
        self.0.change(move |rows| entries::replace(rows, id, kind, &proposal, release))
    }

    fn update(&self, key: EntryKey, change: EntryUpdate, release: Release) -> Pending<'_, ()> {
        self.0.change(move |rows| {
            let found = find(rows, &key)?;
            update::update(rows, found, &change, release)
        })
    }

    fn exchange_names(&self, one: VolumeId, other: VolumeId) -> Pending<'_, ()> {
        self.0.change(move |rows| entries::exchange_names(rows, one, other))
    }

    fn delete(&self, id: VolumeId, kind: Option<VolumeKind>) -> Pending<'_, ()> {
        self.0.change(move |rows| entries::delete(rows, id, kind))
    }

    fn lock(
        &self,
        id: VolumeId,
        kind: Option<VolumeKind>,
        operation: u32,
        now: UnixSeconds,
    ) -> Pending<'_, ()> {
        self.0.change(move |rows| lock::set(rows, id, kind, operation, now))
    }

    fn unlock(&self, id: VolumeId, kind: Option<VolumeKind>, release: Release) -> Pending<'_, ()> {
        self.0.change(move |rows| lock::release(rows, id, kind, release))
    }

    fn new_volume_ids(&self, count: u32) -> Pending<'_, VolumeId> {
        if count == 0 {
            return self.0.read(|rows| volume_ids::current(rows));
        }
        self.0.change(move |rows| volume_ids::allocate(rows, count))
    }

    fn next_entry(&self, row: u32) -> Pending<'_, Option<Located>> {
        self.0.read(move |rows| list::after(rows, row))
    }

    fn list(&self, filter: Filter, start: u32, limit: usize) -> Pending<'_, Page> {
        self.0.read(move |rows| list::page(rows, &filter, start, limit))
    }

    fn register(&self, uuid: Uuid, addresses: Vec<Ipv4Addr>) -> Pending<'_, ServerSlot> {
        self.0.change(move |rows| servers::register(rows, uuid, &addresses))
    }

    fn change_address(&self, from: Ipv4Addr, to: Ipv4Addr) -> Pending<'_, ()> {
        self.0.change(move |rows| servers::change_address(rows, from, to))
    }

    fn servers(&self) -> Pending<'_, Vec<Server>> {
        self.0.read(|rows| servers::all(rows))
    }

    fn server_by_address(&self, address: Ipv4Addr) -> Pending<'_, Option<Server>> {
        self.0.read(move |rows| servers::by_address(rows, address))
    }

    fn server_by_uuid(&self, uuid: Uuid) -> Pending<'_, Option<Server>> {
        self.0.read(move |rows| servers::by_uuid(rows, uuid))
    }

    fn totals(&self) -> Pending<'_, Totals> {
        self.0.read(|rows| {
            Ok(Totals { entries: entries::count(rows)?, next_volume_id: volume_ids::current(rows)? })
        })
    }
}

impl<S: Store> ImportLocations for StoredLocationDb<S> {
    fn import(&self, part: Part, dry: bool) -> Pending<'_, Merged> {
        if dry {
            return self.0.read(move |rows| import::check(rows, &part));
        }
        self.0.change(move |rows| import::write(rows, &part))
    }

    fn part_max(&self) -> usize {
        self.0.part_max()
    }

    fn import_unfinished(&self) -> Pending<'_, bool> {
        self.0.read(|rows| import::is_unfinished(rows))
    }
}

fn find(rows: &(impl Rows + ?Sized), key: &EntryKey) -> Result<entries::Found, LocationError> {
    match key {
        EntryKey::Id(id, kind) => entries::by_id(rows, *id, *kind),
        EntryKey::Name(name) => entries::by_name(rows, name),
    }
}
