//! The protection database over a store of rows.

use std::net::Ipv4Addr;

use afs_wire::ids::ViceId;

use super::{
    After, Answer, Asker, Change, Fields, Kinds, Known, NewEntry, Page, ProtectionDb, Status, bootstrap,
    change, cps, create, delete, fields, ids, import, list, members, rows,
};
use crate::import::Merged;
use crate::import::protection::{ImportPeople, Part};
use crate::{Rows, Store};

/// A protection database whose rows are in a [`Store`]. A handle: clones share the store.
#[derive(Clone)]
pub struct StoredProtectionDb<S>(S);

impl<S: Store> StoredProtectionDb<S> {
    /// The database in a store, which may contain the others too.
    pub fn over(store: S) -> Self {
        StoredProtectionDb(store)
    }
}

impl<S: Store> ProtectionDb for StoredProtectionDb<S> {
    fn version(&self) -> u64 {
        self.0.version()
    }

    fn ids_of(&self, names: Vec<String>) -> Answer<'_, Vec<Option<ViceId>>> {
        self.0.read(move |rows| names.iter().map(|name| rows::id_of(rows, name)).collect())
    }

    fn names_of(&self, ids: Vec<ViceId>) -> Answer<'_, Vec<Option<String>>> {
        let name = |rows: &dyn Rows, id| Ok(rows::entry(rows, id)?.map(|entry| entry.name));
        self.0.read(move |rows| ids.iter().map(|id| name(rows, *id)).collect())
    }

    fn cps(&self, id: ViceId) -> Answer<'_, Vec<ViceId>> {
        self.0.read(move |rows| cps::subdomain(rows, id))
    }

    fn host_cps(&self, host: Ipv4Addr) -> Answer<'_, Vec<ViceId>> {
        self.0.read(move |rows| cps::of_host(rows, host))
    }

    fn identify(&self, asker: Asker) -> Answer<'_, ViceId> {
        self.0.read(move |rows| Known::of(rows, &asker).map(|known| known.id))
    }

    fn create(&self, asker: Asker, new: NewEntry) -> Answer<'_, ViceId> {
        self.0.change(move |rows| create::create(rows, &asker, &new))
    }

    fn delete(&self, asker: Asker, id: ViceId) -> Answer<'_, ()> {
        self.0.change(move |rows| delete::delete(rows, &asker, id))
    }

    fn change(&self, asker: Asker, id: ViceId, wanted: Change) -> Answer<'_, ()> {
        self.0.change(move |rows| change::change(rows, &asker, id, &wanted))
    }

    fn set_fields(&self, asker: Asker, id: ViceId, fields: Fields) -> Answer<'_, ()> {
        self.0.change(move |rows| fields::set(rows, &asker, id, fields))
    }

    fn add_member(&self, asker: Asker, member: ViceId, group: ViceId) -> Answer<'_, ()> {
        self.0.change(move |rows| members::add(rows, &asker, member, group))
    }

    fn remove_member(&self, asker: Asker, member: ViceId, group: ViceId) -> Answer<'_, ()> {
        self.0.change(move |rows| members::remove(rows, &asker, member, group))
    }

    fn status(&self, asker: Asker, id: ViceId) -> Answer<'_, Status> {
        self.0.read(move |rows| list::status(rows, &asker, id))
    }

    fn cps_of(&self, asker: Asker, id: ViceId, host: Option<Ipv4Addr>) -> Answer<'_, Vec<ViceId>> {
        self.0.read(move |rows| list::cps_of(rows, &asker, id, host))
    }

    fn elements(&self, asker: Asker, id: ViceId) -> Answer<'_, Vec<ViceId>> {
        self.0.read(move |rows| list::elements(rows, &asker, id))
    }

    fn supergroups(&self, asker: Asker, id: ViceId) -> Answer<'_, Vec<ViceId>> {
        self.0.read(move |rows| list::supergroups(rows, &asker, id))
    }

    fn is_member(&self, asker: Asker, member: ViceId, group: ViceId) -> Answer<'_, bool> {
        self.0.read(move |rows| list::is_member(rows, &asker, member, group))
    }

    fn owned(&self, asker: Asker, owner: ViceId, after: After, limit: usize) -> Answer<'_, Page<ViceId>> {
        self.0.read(move |rows| list::owned(rows, &asker, owner, after, limit))
    }

    fn list(&self, asker: Asker, kinds: Kinds, after: After, limit: usize) -> Answer<'_, Page<Status>> {
        self.0.read(move |rows| list::entries(rows, &asker, kinds, after, limit))
    }

    fn max_ids(&self) -> Answer<'_, (ViceId, ViceId)> {
        self.0.read(|rows| ids::max(rows))
    }

    fn set_max_id(&self, asker: Asker, id: ViceId, group: bool) -> Answer<'_, ()> {
        self.0.change(move |rows| ids::set_max(rows, &asker, id, group))
    }

    fn bootstrap(&self, administrator: String) -> Answer<'_, ()> {
        self.0.change(move |rows| bootstrap::bootstrap(rows, &administrator))
    }
}

impl<S: Store> ImportPeople for StoredProtectionDb<S> {
    fn import(&self, part: Part, dry: bool) -> Answer<'_, Merged> {
        if dry {
            return self.0.read(move |rows| import::check(rows, &part));
        }
        self.0.change(move |rows| import::write(rows, &part))
    }

    fn part_max(&self) -> usize {
        self.0.part_max()
    }

    fn import_unfinished(&self) -> Answer<'_, bool> {
        self.0.read(|rows| import::is_unfinished(rows))
    }
}
