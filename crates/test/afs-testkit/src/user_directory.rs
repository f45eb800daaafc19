//! Name services of test cells: users, groups and memberships in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::net::IpAddr;
use std::sync::Arc;

use afs_rpc::sync::Notify;
use afs_rpc::{BoxFuture, Identity, Principal, Terms, TokenGeneration};
use afs_server::Guard;
use afs_server::subject::{NameService, Pending, Subject};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use parking_lot::Mutex;

/// Users and groups that a test enters and changes. Clones share them.
#[derive(Clone, Default)]
pub struct UserDirectory(Arc<Shared>);

#[derive(Default)]
struct Shared {
    known: Mutex<Known>,
    /// Notified after each change.
    moved: Notify,
}

#[derive(Default)]
struct Known {
    version: u64,
    ids: BTreeMap<String, ViceId>,
    groups: BTreeMap<ViceId, BTreeSet<ViceId>>,
    tokens: BTreeMap<String, TokenGeneration>,
}

impl UserDirectory {
    /// Enters a user, or a group, whose id is below zero.
    pub fn add(&self, name: &str, id: i32) {
        self.change(|known| _ = known.ids.insert(name.to_owned(), ViceId(id)));
    }

    /// Removes a user or a group.
    pub fn remove(&self, name: &str) {
        self.change(|known| _ = known.ids.remove(name));
    }

    /// Adds a user to a group. Both have been entered.
    pub fn join(&self, member: &str, group: &str) {
        self.change(|known| {
            let (member, group) = (known.ids[member], known.ids[group]);
            known.groups.entry(group).or_default().insert(member);
        });
    }

    /// Removes a user from a group. Both have been entered.
    pub fn leave(&self, member: &str, group: &str) {
        self.change(|known| {
            let (member, group) = (known.ids[member], known.ids[group]);
            known.groups.entry(group).or_default().remove(&member);
        });
    }

    /// Revokes the tokens of a user before this generation.
    pub fn revoke(&self, name: &str, before: u64) {
        self.change(|known| _ = known.tokens.insert(name.to_owned(), TokenGeneration(before)));
    }

    fn change(&self, change: impl FnOnce(&mut Known)) {
        let mut known = self.0.known.lock();
        change(&mut known);
        known.version += 1;
        drop(known);
        self.0.moved.notify_waiters();
    }

    fn named(&self, name: &str, terms: &Terms) -> Result<Subject, AbortCode> {
        let known = self.0.known.lock();
        let Some(id) = known.ids.get(name) else { return Ok(Subject::anonymous()) };
        if !terms.count_in(known.tokens.get(name).copied().unwrap_or_default()) {
            return Err(AbortCode::RXGKEXPIRED);
        }
        let groups = known.groups.iter();
        let of = groups.filter(|(group, members)| members.contains(id) && !terms.suspended.has(**group));
        let of = of.map(|(group, _)| *group);
        Ok(Subject::new(*id, of.chain([ViceId::AUTHUSER, ViceId::ANYUSER])))
    }
}

impl NameService for UserDirectory {
    fn subject<'a>(&'a self, identity: &'a Identity, _: IpAddr) -> Pending<'a, Subject> {
        let subject = match identity.principal() {
            Some(Principal::Named { name, cell: None, terms }) => self.named(name, terms),
            Some(Principal::CellKey) => Ok(Subject::administrator()),
            _ => Ok(Subject::anonymous()),
        };
        Box::pin(ready(subject))
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        let known = self.0.known.lock();
        let id = |name: &String| known.ids.get(name).copied().or(ViceId::from_well_known_name(name));
        Box::pin(ready(Ok(names.iter().map(id).collect())))
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        let known = self.0.known.lock();
        let own =
            |id: &ViceId| known.ids.iter().find(|(_, known)| *known == id).map(|(name, _)| name.clone());
        let name = |id: &ViceId| own(id).or(id.well_known_name().map(Into::into));
        Box::pin(ready(Ok(ids.iter().map(name).collect())))
    }

    fn version(&self) -> Option<u64> {
        Some(self.0.known.lock().version)
    }

    fn changed(&self, since: u64) -> Option<BoxFuture<'_, ()>> {
        Some(Box::pin(async move {
            loop {
                let moved = self.0.moved.notified();
                if self.version() != Some(since) {
                    return;
                }
                moved.await;
            }
        }))
    }
}

/// The names of a server that is not told of changes of groups, as none of another implementation is.
pub struct UntoldNames(pub Guard);

impl NameService for UntoldNames {
    fn subject<'a>(&'a self, identity: &'a Identity, host: IpAddr) -> Pending<'a, Subject> {
        self.0.names().subject(identity, host)
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        self.0.names().ids_of(names)
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        self.0.names().names_of(ids)
    }
}

/// Every caller is an administrator: for tests whose subject is not permissions.
pub struct AllAdministrators;

impl NameService for AllAdministrators {
    fn subject<'a>(&'a self, _: &'a Identity, _: IpAddr) -> Pending<'a, Subject> {
        Box::pin(ready(Ok(Subject::administrator())))
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        Box::pin(ready(Ok(vec![None; names.len()])))
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        Box::pin(ready(Ok(vec![None; ids.len()])))
    }
}
