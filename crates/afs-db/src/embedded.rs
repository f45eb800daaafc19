//! The location database in the transactional store of one process.

use std::future::ready;
use std::net::Ipv4Addr;
use std::ops::Bound;

use afs_kv::{Kv, Snapshot, Txn, UpdateError};
use afs_wire::ids::{UnixSeconds, Uuid, VolumeId, VolumeKind};

use crate::import::Merged;
use crate::import::location::{self as import, ImportLocations, Part};
use crate::{
    Answer, EntryKey, EntryUpdate, Filter, Located, LocationDb, LocationError, Page, Proposal, Refusal,
    Release, Row, Rows, RowsMut, Server, ServerSlot, Totals, entries, list, lock, servers, update,
    volume_ids,
};

/// A location database whose rows are tables of an [`afs_kv::Kv`]. A handle: clones share the store.
///
/// Reads are answered at once from a snapshot. A change is one operation of the store's next batch.
#[derive(Clone)]
pub struct EmbeddedLocationDb {
    kv: Kv,
}

impl EmbeddedLocationDb {
    /// Takes a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        EmbeddedLocationDb { kv }
    }

    fn read<'a, T: Send + 'a>(
        &'a self,
        question: impl FnOnce(&Snapshot) -> Result<T, LocationError>,
    ) -> Answer<'a, T> {
        Box::pin(ready(question(&self.kv.snapshot())))
    }

    fn change<'a, T: Send + 'static>(
        &'a self,
        change: impl FnOnce(&mut Txn<'_>) -> Result<T, LocationError> + Send + 'static,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            self.kv.update(change).await.map_err(|error| match error {
                UpdateError::Refused(error) => error,
                UpdateError::Kv(error) => LocationError::Store(error.to_string()),
            })
        })
    }
}

impl LocationDb for EmbeddedLocationDb {
    fn entry(&self, key: EntryKey) -> Answer<'_, Located> {
        self.read(|rows| entries::locate(rows, find(rows, &key)?))
    }

    fn create(&self, proposal: Proposal) -> Answer<'_, ()> {
        self.change(move |rows| entries::create(rows, &proposal))
    }

    fn replace(
        &self,
        id: VolumeId,
        kind: Option<VolumeKind>,
        proposal: Proposal,
        release: Release,
    ) -> Answer<'_, ()> {
        self.change(move |rows| entries::replace(rows, id, kind, &proposal, release))
    }

    fn update(&self, key: EntryKey, change: EntryUpdate, release: Release) -> Answer<'_, ()> {
        self.change(move |rows| {
            let found = find(rows, &key)?;
            update::update(rows, found, &change, release)
        })
    }

    fn delete(&self, id: VolumeId, kind: Option<VolumeKind>) -> Answer<'_, ()> {
        self.change(move |rows| entries::delete(rows, id, kind))
    }

    fn lock(
        &self,
        id: VolumeId,
        kind: Option<VolumeKind>,
        operation: u32,
        now: UnixSeconds,
    ) -> Answer<'_, ()> {
        self.change(move |rows| lock::set(rows, id, kind, operation, now))
    }

    fn unlock(&self, id: VolumeId, kind: Option<VolumeKind>, release: Release) -> Answer<'_, ()> {
        self.change(move |rows| lock::release(rows, id, kind, release))
    }

    fn new_volume_ids(&self, count: u32) -> Answer<'_, VolumeId> {
        if count == 0 {
            return self.read(volume_ids::current);
        }
        self.change(move |rows| volume_ids::allocate(rows, count))
    }

    fn next_entry(&self, row: u32) -> Answer<'_, Option<Located>> {
        self.read(|rows| list::after(rows, row))
    }

    fn list(&self, filter: Filter, start: u32, limit: usize) -> Answer<'_, Page> {
        self.read(|rows| list::page(rows, &filter, start, limit))
    }

    fn register(&self, uuid: Uuid, addresses: Vec<Ipv4Addr>) -> Answer<'_, ServerSlot> {
        self.change(move |rows| servers::register(rows, uuid, &addresses))
    }

    fn change_address(&self, from: Ipv4Addr, to: Ipv4Addr) -> Answer<'_, ()> {
        self.change(move |rows| servers::change_address(rows, from, to))
    }

    fn servers(&self) -> Answer<'_, Vec<Server>> {
        self.read(servers::all)
    }

    fn server_by_address(&self, address: Ipv4Addr) -> Answer<'_, Option<Server>> {
        self.read(|rows| servers::by_address(rows, address))
    }

    fn server_by_uuid(&self, uuid: Uuid) -> Answer<'_, Option<Server>> {
        self.read(|rows| servers::by_uuid(rows, uuid))
    }

    fn totals(&self) -> Answer<'_, Totals> {
        self.read(|rows| {
            Ok(Totals { entries: entries::count(rows)?, next_volume_id: volume_ids::current(rows)? })
        })
    }
}

impl ImportLocations for EmbeddedLocationDb {
    fn import(&self, part: Part, dry: bool) -> Answer<'_, Merged> {
        if dry {
            return self.read(|rows| import::check(rows, &part));
        }
        self.change(move |rows| import::write(rows, &part))
    }

    fn part_max(&self) -> usize {
        10_000
    }

    fn import_unfinished(&self) -> Answer<'_, bool> {
        self.read(import::is_unfinished)
    }
}

fn find(rows: &impl Rows, key: &EntryKey) -> Result<entries::Found, LocationError> {
    match key {
        EntryKey::Id(id, kind) => entries::by_id(rows, *id, *kind),
        EntryKey::Name(name) => entries::by_name(rows, name),
    }
}

impl Rows for Snapshot {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        Ok(self.get(table, key).map_err(store)?.map(|value| value.to_vec()))
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        take(Snapshot::range(self, table, (Bound::Included(from), Bound::Excluded(until)), false), limit)
    }
}

impl Rows for Txn<'_> {
    fn get(&self, table: &'static str, key: &[u8]) -> Result<Option<Vec<u8>>, LocationError> {
        Ok(self.get(table, key).map_err(store)?.map(|value| value.to_vec()))
    }

    fn range(
        &self,
        table: &'static str,
        from: &[u8],
        until: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, LocationError> {
        take(Txn::range(self, table, (Bound::Included(from), Bound::Excluded(until)), false), limit)
    }
}

impl RowsMut for Txn<'_> {
    fn put(&mut self, table: &'static str, key: &[u8], value: &[u8]) -> Result<(), LocationError> {
        Txn::put(self, table, key, value.to_vec());
        Ok(())
    }

    fn delete(&mut self, table: &'static str, key: &[u8]) -> Result<(), LocationError> {
        Txn::delete(self, table, key);
        Ok(())
    }
}

fn take(
    rows: impl Iterator<Item = Result<afs_kv::Row, afs_kv::KvError>>,
    limit: usize,
) -> Result<Vec<Row>, LocationError> {
    rows.take(limit)
        .map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(store))
        .collect()
}

fn store(error: afs_kv::KvError) -> LocationError {
    match error {
        afs_kv::KvError::Corrupt(_) => Refusal::Damaged.into(),
        other => LocationError::Store(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use afs_kv::{Config, Inline, MemoryMedium};

    use super::*;
    use crate::{ProposedSite, TABLES, entry_flags};

    /// With work run inline every answer is there at the first poll.
    fn wait<T>(answer: Answer<'_, T>) -> Result<T, LocationError> {
        match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("an inline store answers at once"),
        }
    }

    fn open(medium: &MemoryMedium) -> EmbeddedLocationDb {
        let medium = Arc::new(medium.clone());
        EmbeddedLocationDb::new(Kv::open(medium, TABLES, Arc::new(Inline), Config::default()).unwrap())
    }

    fn root_cell() -> Proposal {
        Proposal {
            name: "root.cell".into(),
            ids: [VolumeId(0x2000_0000), VolumeId(0), VolumeId(0)],
            clone: VolumeId(0),
            flags: entry_flags::RW_EXISTS,
            sites: vec![ProposedSite { address: Ipv4Addr::new(10, 0, 0, 1), partition: 0, flags: 4 }],
        }
    }

    #[test]
    fn entries_outlive_the_process() {
        let medium = MemoryMedium::default();
        let uuid = Uuid([5; 16]);
        {
            let db = open(&medium);
            wait(db.register(uuid, vec![Ipv4Addr::new(10, 0, 0, 1)])).unwrap();
            assert_eq!(wait(db.new_volume_ids(1)), Ok(VolumeId(0x2000_0000)));
            wait(db.create(root_cell())).unwrap();
        }
        let db = open(&medium);
        let located = wait(db.entry(EntryKey::Name("root.cell.readonly".into()))).unwrap();
        assert_eq!(located.servers[0].uuid, Some(uuid));
        let totals = Totals { entries: 1, next_volume_id: VolumeId(0x2000_0001) };
        assert_eq!(wait(db.totals()), Ok(totals));
    }

    #[test]
    fn a_refused_change_leaves_nothing() {
        let db = open(&MemoryMedium::default());
        let mut bad = root_cell();
        bad.sites.push(ProposedSite { address: Ipv4Addr::new(10, 0, 0, 2), partition: 999, flags: 4 });
        assert_eq!(wait(db.create(bad)), Err(Refusal::BadPartition.into()));
        wait(db.create(root_cell())).unwrap();
        assert_eq!(wait(db.create(root_cell())), Err(Refusal::IdExists.into()));
        assert_eq!(wait(db.servers()).unwrap().len(), 1);
        assert_eq!(wait(db.list(Filter::default(), 0, 10)).unwrap().entries.len(), 1);
    }
}
