//! Caller of a protection query: its authenticated name, and its entry in the database.

use afs_rpc::Terms;
use afs_wire::ids::ViceId;

use super::{ProtectionError, Refusal, cps, rows};
use crate::Rows;

/// The authenticated identity of a caller.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RequesterIdentity {
    /// An anonymous caller.
    Anonymous,
    /// A holder of the cell's key, or a program of the cell itself: `system:administrators`.
    CellKey,
    /// A user of this cell.
    Local {
        /// In lower case.
        name: String,
        /// What the caller's token says besides.
        terms: Terms,
    },
    /// A user of another cell. Never taken for a user of this cell.
    Foreign {
        /// `name@cell`, in lower case.
        name: String,
        /// What the caller's token says besides.
        terms: Terms,
    },
}

/// A caller, with the rules that apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requester {
    /// The identity.
    pub identity: RequesterIdentity,
    /// Whether only administrators may change anything (`-restricted`).
    pub restricted: bool,
}

impl RequesterIdentity {
    /// A user of this cell, with all groups.
    #[must_use]
    pub fn local(name: impl Into<String>) -> Self {
        RequesterIdentity::Local { name: name.into(), terms: Terms::default() }
    }

    /// A user of another cell, `name@cell`.
    #[must_use]
    pub fn foreign(name: impl Into<String>) -> Self {
        RequesterIdentity::Foreign { name: name.into(), terms: Terms::default() }
    }
}

impl Requester {
    /// The cell itself.
    pub const CELL: Requester = Requester { identity: RequesterIdentity::CellKey, restricted: false };
}

/// A caller found in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) id: ViceId,
    /// Its groups, direct and nested, sorted.
    groups: Vec<ViceId>,
}

impl Known {
    /// Looks up a caller (docs/protocol ptserver.md "4. Access control inside PR"): a local name without an
    /// entry and a foreign one, registered or not, are refused.
    pub(super) fn of(rows: &(impl Rows + ?Sized), requester: &Requester) -> Result<Self, ProtectionError> {
        let (id, terms) = match &requester.identity {
            RequesterIdentity::Anonymous => (ViceId::ANONYMOUS, &Terms::default()),
            RequesterIdentity::CellKey => return Ok(Known::administrators()),
            RequesterIdentity::Local { name, terms } if !name.contains('@') => {
                let id = rows::id_of(rows, name)?;
                // A principal may have the name of a group, or of the anonymous user.
                let user = id.filter(|id| !id.is_group() && *id != ViceId::ANONYMOUS);
                (user.ok_or(Refusal::Permission)?, terms)
            }
            RequesterIdentity::Local { .. } | RequesterIdentity::Foreign { .. } => {
                return Err(Refusal::Permission.into());
            }
        };
        Ok(Known { id, groups: cps::of_holder(rows, id, terms)? })
    }

    /// A member of `system:administrators` without an entry of its own.
    pub(super) fn administrators() -> Self {
        Known { id: ViceId::ADMINISTRATORS, groups: vec![ViceId::ADMINISTRATORS] }
    }

    /// Whether it is this user or in this group.
    pub(super) fn is(&self, id: ViceId) -> bool {
        self.groups.binary_search(&id).is_ok()
    }

    pub(super) fn is_administrator(&self) -> bool {
        self.is(ViceId::ADMINISTRATORS)
    }

    /// Refuses all callers but administrators.
    pub(super) fn administrator_only(&self) -> Result<(), Refusal> {
        if self.is_administrator() { Ok(()) } else { Err(Refusal::Permission) }
    }
}
