//! The protection database over a store of rows.

use std::net::Ipv4Addr;

use afs_rpc::{BoxFuture, Terms, UnixTime};
use afs_wire::ids::ViceId;

use super::{
    After, Change, Fields, Kinds, Known, NewEntry, Page, Pending, ProtectionDb, Requester, Status, bootstrap,
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

    fn changed(&self, since: u64) -> BoxFuture<'_, ()> {
        self.0.changed(since)
    }

    fn ids_of(&self, names: Vec<String>) -> Pending<'_, Vec<Option<ViceId>>> {
        self.0.read(move |rows| names.iter().map(|name| rows::id_of(rows, name)).collect())
    }

    fn names_of(&self, ids: Vec<ViceId>) -> Pending<'_, Vec<Option<String>>> {
        let name = |rows: &dyn Rows, id| Ok(rows::entry(rows, id)?.map(|entry| entry.name));
        self.0.read(move |rows| ids.iter().map(|id| name(rows, *id)).collect())
    }

    fn cps(&self, id: ViceId, terms: Terms) -> Pending<'_, Vec<ViceId>> {
        self.0.read(move |rows| cps::of_holder(rows, id, &terms))
    }

    fn host_cps(&self, host: Ipv4Addr) -> Pending<'_, Vec<ViceId>> {
        self.0.read(move |rows| cps::of_host(rows, host))
    }

    fn identify(&self, requester: Requester) -> Pending<'_, ViceId> {
        self.0.read(move |rows| Known::of(rows, &requester).map(|known| known.id))
    }

    fn create(&self, requester: Requester, new: NewEntry) -> Pending<'_, ViceId> {
        self.0.change(move |rows| create::create(rows, &requester, &new))
    }

    fn delete(&self, requester: Requester, id: ViceId, now: UnixTime) -> Pending<'_, ()> {
        self.0.change(move |rows| delete::delete(rows, &requester, id, now))
    }

    fn change(&self, requester: Requester, id: ViceId, wanted: Change, now: UnixTime) -> Pending<'_, ()> {
        self.0.change(move |rows| change::change(rows, &requester, id, &wanted, now))
    }

    fn set_fields(&self, requester: Requester, id: ViceId, fields: Fields) -> Pending<'_, ()> {
        self.0.change(move |rows| fields::set(rows, &requester, id, fields))
    }

    fn add_member(&self, requester: Requester, member: ViceId, group: ViceId) -> Pending<'_, ()> {
        self.0.change(move |rows| members::add(rows, &requester, member, group))
    }

    fn remove_member(&self, requester: Requester, member: ViceId, group: ViceId) -> Pending<'_, ()> {
        self.0.change(move |rows| members::remove(rows, &requester, member, group))
    }

    fn status(&self, requester: Requester, id: ViceId) -> Pending<'_, Status> {
        self.0.read(move |rows| list::status(rows, &requester, id))
    }

    fn cps_of(&self, requester: Requester, id: ViceId, host: Option<Ipv4Addr>) -> Pending<'_, Vec<ViceId>> {
        self.0.read(move |rows| list::cps_of(rows, &requester, id, host))
    }

    fn elements(&self, requester: Requester, id: ViceId) -> Pending<'_, Vec<ViceId>> {
        self.0.read(move |rows| list::elements(rows, &requester, id))
    }

    fn supergroups(&self, requester: Requester, id: ViceId) -> Pending<'_, Vec<ViceId>> {
        self.0.read(move |rows| list::supergroups(rows, &requester, id))
    }

    fn is_member(&self, requester: Requester, member: ViceId, group: ViceId) -> Pending<'_, bool> {
        self.0.read(move |rows| list::is_member(rows, &requester, member, group))
    }

    fn owned(
        &self,
        requester: Requester,
        owner: ViceId,
        after: After,
        limit: usize,
    ) -> Pending<'_, Page<ViceId>> {
        self.0.read(move |rows| list::owned(rows, &requester, owner, after, limit))
    }

    fn list(
        &self,
        requester: Requester,
        kinds: Kinds,
        after: After,
        limit: usize,
    ) -> Pending<'_, Page<Status>> {
        self.0.read(move |rows| list::entries(rows, &requester, kinds, after, limit))
    }

    fn max_ids(&self) -> Pending<'_, (ViceId, ViceId)> {
        self.0.read(|rows| ids::max(rows))
    }

    fn set_max_id(&self, requester: Requester, id: ViceId, group: bool) -> Pending<'_, ()> {
        self.0.change(move |rows| ids::set_max(rows, &requester, id, group))
    }

    fn bootstrap(&self, administrator: String) -> Pending<'_, ()> {
        self.0.change(move |rows| bootstrap::bootstrap(rows, &administrator))
    }
}

impl<S: Store> ImportPeople for StoredProtectionDb<S> {
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
