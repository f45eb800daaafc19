//! Who asks: an id and the groups it is in.

use std::sync::Arc;

use afs_rpc::Identity;
use afs_wire::acl::Names;
use afs_wire::ids::ViceId;

/// The caller of an operation, with its current protection subdomain (docs/protocol fileserver.md "5.1 Caller identity").
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subject {
    id: ViceId,
    groups: Arc<[ViceId]>,
}

impl Subject {
    /// A caller with the groups it is in; its own id is added.
    pub fn new(id: ViceId, groups: impl IntoIterator<Item = ViceId>) -> Self {
        let mut groups: Vec<ViceId> = groups.into_iter().chain([id]).collect();
        groups.sort_unstable();
        groups.dedup();
        Subject { id, groups: groups.into() }
    }

    /// A caller who proves nothing.
    pub fn anonymous() -> Self {
        Subject::new(ViceId::ANONYMOUS, [ViceId::ANYUSER])
    }

    /// Its own id.
    pub fn id(&self) -> ViceId {
        self.id
    }

    /// Its own id and its groups, sorted.
    pub fn groups(&self) -> &[ViceId] {
        &self.groups
    }

    /// Whether it is that user or in that group.
    pub fn is(&self, id: ViceId) -> bool {
        self.groups.binary_search(&id).is_ok()
    }

    /// Whether it proves nothing.
    pub fn is_anonymous(&self) -> bool {
        self.id == ViceId::ANONYMOUS
    }

    /// Whether it is in `system:administrators`.
    pub fn is_administrator(&self) -> bool {
        self.is(ViceId::ADMINISTRATORS)
    }
}

/// Names and memberships: what the protection database of a cell knows.
pub trait NameService: Names + Send + Sync + 'static {
    /// The caller behind a connection.
    fn subject(&self, identity: &Identity) -> Subject;
}

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
        let groups = [ViceId::ADMINISTRATORS, ViceId::AUTHUSER, ViceId::ANYUSER];
        BuiltInNames { owner: Subject::new(ADMIN, groups), anonymous: Subject::anonymous() }
    }
}

impl NameService for BuiltInNames {
    fn subject(&self, identity: &Identity) -> Subject {
        match identity {
            Identity::Local => self.owner.clone(),
            _ => self.anonymous.clone(),
        }
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
        let anonymous = names.subject(&Identity::Anonymous);
        assert_eq!(anonymous.groups(), [ViceId::ANYUSER, ViceId::ANONYMOUS]);
        assert!(anonymous.is_anonymous() && !anonymous.is_administrator());
        let owner = names.subject(&Identity::Local);
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
