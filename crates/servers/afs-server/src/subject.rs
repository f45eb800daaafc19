//! Subject of an operation: the caller's id with all its groups; and the name service that resolves it.

use std::future::ready;
use std::net::IpAddr;
use std::sync::Arc;

use afs_rpc::{BoxFuture, Identity, Principal};
use afs_wire::acl::Names;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;

/// The caller of an operation, with its current protection subdomain (docs/protocol fileserver.md "5.1 Caller
/// identity").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    id: ViceId,
    groups: Arc<[ViceId]>,
    host_groups: Option<Arc<[ViceId]>>,
}

impl Subject {
    /// A caller with its groups; its own id is added.
    pub fn new(id: ViceId, groups: impl IntoIterator<Item = ViceId>) -> Self {
        Subject { id, groups: sorted(groups.into_iter().chain([id])), host_groups: None }
    }

    /// The same caller on a host with groups of its own: the host's rights are the caller's as well.
    #[must_use]
    pub fn on_host_in(mut self, groups: impl IntoIterator<Item = ViceId>) -> Self {
        self.host_groups = Some(sorted(groups)).filter(|groups| !groups.is_empty());
        self
    }

    /// An unauthenticated caller.
    pub fn anonymous() -> Self {
        Subject::new(ViceId::ANONYMOUS, [ViceId::ANYUSER])
    }

    /// A holder of the cell's key, or a program on the cell's own host.
    pub fn administrator() -> Self {
        Subject::new(ADMIN, [ViceId::ADMINISTRATORS, ViceId::AUTHUSER, ViceId::ANYUSER])
    }

    /// Its own id.
    pub fn id(&self) -> ViceId {
        self.id
    }

    /// Its own id and its groups, sorted.
    pub fn groups(&self) -> &[ViceId] {
        &self.groups
    }

    /// The groups of its host, sorted.
    pub fn host_groups(&self) -> &[ViceId] {
        self.host_groups.as_deref().unwrap_or_default()
    }

    /// Whether it is this user or in this group.
    pub fn is(&self, id: ViceId) -> bool {
        self.groups.binary_search(&id).is_ok()
    }

    /// Whether its host is in this group.
    pub fn host_is(&self, id: ViceId) -> bool {
        self.host_groups().binary_search(&id).is_ok()
    }

    /// Whether it is unauthenticated.
    pub fn is_anonymous(&self) -> bool {
        self.id == ViceId::ANONYMOUS
    }

    /// Whether it is in `system:administrators`. Groups of its host do not count.
    pub fn is_administrator(&self) -> bool {
        self.is(ViceId::ADMINISTRATORS)
    }
}

fn sorted(ids: impl IntoIterator<Item = ViceId>) -> Arc<[ViceId]> {
    let mut ids: Vec<ViceId> = ids.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    ids.into()
}

/// Names and memberships in a cell's protection database.
///
/// Results are valid for one call only: callers must not keep them, so that a revoked membership is missing
/// at the next call. Results of an embedded database are ready at the first poll.
pub trait NameService: Send + Sync + 'static {
    /// The subject of a connection, with its groups and those of its host. The cell's key and the cell's own
    /// process are administrators; a name without an entry is anonymous.
    ///
    /// # Errors
    /// The code to end the call with when no database can be reached.
    fn subject<'a>(&'a self, identity: &'a Identity, host: IpAddr) -> Pending<'a, Subject>;

    /// The users and groups with these names, in their order.
    ///
    /// # Errors
    /// As [`NameService::subject`].
    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>>;

    /// The names of these users and groups, in their order.
    ///
    /// # Errors
    /// As [`NameService::subject`].
    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>>;

    /// A number that changes with what the service knows: while it is unchanged, a subject is what it was.
    /// `None` where that is not known.
    fn version(&self) -> Option<u64> {
        None
    }

    /// Ready when the version is another than `since`. `None` where there is no version.
    fn changed(&self, _since: u64) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Whether the version follows changes at once at present.
    fn follows_changes(&self) -> bool {
        self.changed(0).is_some()
    }
}

/// The pending result of a [`NameService`].
pub type Pending<'a, T> = BoxFuture<'a, Result<T, AbortCode>>;

/// The id of the cell's owner.
pub const ADMIN: ViceId = ViceId(1);
const ADMIN_NAME: &str = "admin";

/// The names that every cell has, and its owner: user 1, `admin`, the one member of `system:administrators`.
#[derive(Clone, Debug)]
pub struct BuiltInNames {
    owner: Subject,
    anonymous: Subject,
}

impl Default for BuiltInNames {
    fn default() -> Self {
        BuiltInNames { owner: Subject::administrator(), anonymous: Subject::anonymous() }
    }
}

impl BuiltInNames {
    fn known(&self, identity: &Identity) -> Subject {
        match (identity, identity.principal()) {
            (Identity::Local, _) | (_, Some(Principal::CellKey)) => self.owner.clone(),
            _ => self.anonymous.clone(),
        }
    }
}

impl NameService for BuiltInNames {
    fn subject<'a>(&'a self, identity: &'a Identity, _: IpAddr) -> Pending<'a, Subject> {
        Box::pin(ready(Ok(self.known(identity))))
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        Box::pin(ready(Ok(names.iter().map(|name| self.id_of(name)).collect())))
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        Box::pin(ready(Ok(ids.iter().map(|id| self.name_of(*id)).collect())))
    }
}

impl Names for BuiltInNames {
    fn id_of(&self, name: &str) -> Option<ViceId> {
        if name == ADMIN_NAME { Some(ADMIN) } else { ViceId::from_well_known_name(name) }
    }

    fn name_of(&self, id: ViceId) -> Option<String> {
        if id == ADMIN { Some(ADMIN_NAME.into()) } else { id.well_known_name().map(Into::into) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anybody_may_be_anonymous_and_the_owner_is_an_administrator() {
        let names = BuiltInNames::default();
        let anonymous = names.known(&Identity::Anonymous);
        assert_eq!(anonymous.groups(), [ViceId::ANYUSER, ViceId::ANONYMOUS]);
        assert!(anonymous.is_anonymous() && !anonymous.is_administrator());
        let owner = names.known(&Identity::Local);
        assert!(owner.is_administrator() && owner.is(ADMIN) && owner.is(ViceId::AUTHUSER));
    }

    #[test]
    fn names_and_ids() {
        let names = BuiltInNames::default();
        for (name, id) in [("admin", 1), ("system:anyuser", -101), ("anonymous", 32766)] {
            assert_eq!(names.id_of(name), Some(ViceId(id)));
            assert_eq!(names.name_of(ViceId(id)).as_deref(), Some(name));
        }
        assert_eq!(names.id_of("Admin"), None);
        assert_eq!(names.name_of(ViceId(7)), None);
    }
}
