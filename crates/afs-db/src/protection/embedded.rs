//! The protection database in the transactional store of one process.

use std::future::ready;
use std::net::Ipv4Addr;

use afs_kv::{Kv, Snapshot, Txn, UpdateError};
use afs_wire::ids::ViceId;

use super::{
    After, Answer, Asker, Change, Fields, Kinds, Known, NewEntry, Page, ProtectionDb, ProtectionError,
    Status, bootstrap, change, cps, create, delete, fields, ids, import, list, members, rows,
};
use crate::import::Merged;
use crate::import::protection::{ImportPeople, Part};

/// A protection database whose rows are tables of an [`afs_kv::Kv`]. A handle: clones share the store, which may hold
/// the other databases too.
///
/// Reads are answered at once from a snapshot. A change is one operation of the store's next batch.
#[derive(Clone)]
pub struct EmbeddedProtectionDb {
    kv: Kv,
}

impl EmbeddedProtectionDb {
    /// Takes a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        EmbeddedProtectionDb { kv }
    }

    fn read<'a, T: Send + 'a>(
        &'a self,
        question: impl FnOnce(&Snapshot) -> Result<T, ProtectionError>,
    ) -> Answer<'a, T> {
        Box::pin(ready(question(&self.kv.snapshot())))
    }

    fn write<'a, T: Send + 'static>(
        &'a self,
        change: impl FnOnce(&mut Txn<'_>) -> Result<T, ProtectionError> + Send + 'static,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            self.kv.update(change).await.map_err(|error| match error {
                UpdateError::Refused(error) => error,
                UpdateError::Kv(error) => ProtectionError::Store(error.to_string()),
            })
        })
    }
}

impl ProtectionDb for EmbeddedProtectionDb {
    /// The number of the last batch that readers see. Changes of other databases in the same store count too.
    fn version(&self) -> u64 {
        self.kv.snapshot().sequence()
    }

    fn ids_of(&self, names: Vec<String>) -> Answer<'_, Vec<Option<ViceId>>> {
        self.read(|rows| names.iter().map(|name| rows::id_of(rows, name)).collect())
    }

    fn names_of(&self, ids: Vec<ViceId>) -> Answer<'_, Vec<Option<String>>> {
        let name = |rows: &Snapshot, id| Ok(rows::entry(rows, id)?.map(|entry| entry.name));
        self.read(|rows| ids.iter().map(|id| name(rows, *id)).collect())
    }

    fn cps(&self, id: ViceId) -> Answer<'_, Vec<ViceId>> {
        self.read(|rows| cps::subdomain(rows, id))
    }

    fn host_cps(&self, host: Ipv4Addr) -> Answer<'_, Vec<ViceId>> {
        self.read(|rows| cps::of_host(rows, host))
    }

    fn identify(&self, asker: Asker) -> Answer<'_, ViceId> {
        self.read(|rows| Known::of(rows, &asker).map(|known| known.id))
    }

    fn create(&self, asker: Asker, new: NewEntry) -> Answer<'_, ViceId> {
        self.write(move |rows| create::create(rows, &asker, &new))
    }

    fn delete(&self, asker: Asker, id: ViceId) -> Answer<'_, ()> {
        self.write(move |rows| delete::delete(rows, &asker, id))
    }

    fn change(&self, asker: Asker, id: ViceId, wanted: Change) -> Answer<'_, ()> {
        self.write(move |rows| change::change(rows, &asker, id, &wanted))
    }

    fn set_fields(&self, asker: Asker, id: ViceId, fields: Fields) -> Answer<'_, ()> {
        self.write(move |rows| fields::set(rows, &asker, id, fields))
    }

    fn add_member(&self, asker: Asker, member: ViceId, group: ViceId) -> Answer<'_, ()> {
        self.write(move |rows| members::add(rows, &asker, member, group))
    }

    fn remove_member(&self, asker: Asker, member: ViceId, group: ViceId) -> Answer<'_, ()> {
        self.write(move |rows| members::remove(rows, &asker, member, group))
    }

    fn status(&self, asker: Asker, id: ViceId) -> Answer<'_, Status> {
        self.read(|rows| list::status(rows, &asker, id))
    }

    fn cps_of(&self, asker: Asker, id: ViceId, host: Option<Ipv4Addr>) -> Answer<'_, Vec<ViceId>> {
        self.read(|rows| list::cps_of(rows, &asker, id, host))
    }

    fn elements(&self, asker: Asker, id: ViceId) -> Answer<'_, Vec<ViceId>> {
        self.read(|rows| list::elements(rows, &asker, id))
    }

    fn supergroups(&self, asker: Asker, id: ViceId) -> Answer<'_, Vec<ViceId>> {
        self.read(|rows| list::supergroups(rows, &asker, id))
    }

    fn is_member(&self, asker: Asker, member: ViceId, group: ViceId) -> Answer<'_, bool> {
        self.read(|rows| list::is_member(rows, &asker, member, group))
    }

    fn owned(&self, asker: Asker, owner: ViceId, after: After, limit: usize) -> Answer<'_, Page<ViceId>> {
        self.read(|rows| list::owned(rows, &asker, owner, after, limit))
    }

    fn list(&self, asker: Asker, kinds: Kinds, after: After, limit: usize) -> Answer<'_, Page<Status>> {
        self.read(|rows| list::entries(rows, &asker, kinds, after, limit))
    }

    fn max_ids(&self) -> Answer<'_, (ViceId, ViceId)> {
        self.read(ids::max)
    }

    fn set_max_id(&self, asker: Asker, id: ViceId, group: bool) -> Answer<'_, ()> {
        self.write(move |rows| ids::set_max(rows, &asker, id, group))
    }

    fn bootstrap(&self, administrator: String) -> Answer<'_, ()> {
        self.write(move |rows| bootstrap::bootstrap(rows, &administrator))
    }
}

impl ImportPeople for EmbeddedProtectionDb {
    fn import(&self, part: Part, dry: bool) -> Answer<'_, Merged> {
        if dry {
            return self.read(|rows| import::check(rows, &part));
        }
        self.write(move |rows| import::write(rows, &part))
    }

    fn part_max(&self) -> usize {
        10_000
    }

    fn import_unfinished(&self) -> Answer<'_, bool> {
        self.read(import::is_unfinished)
    }
}
