//! Who asks, and what of it the database knows.

use afs_wire::ids::ViceId;

use super::{ProtectionError, Refusal, cps, rows};
use crate::Rows;

/// Who asks, as far as it was proven.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Who {
    /// Nobody in particular.
    Anonymous,
    /// Whoever holds the cell's key, or runs the cell: `system:administrators` itself.
    CellKey,
    /// Somebody of this cell, in lower case.
    Local(String),
    /// Somebody of another cell: `name@cell`, in lower case. Never taken for anybody of this cell.
    Foreign(String),
}

/// Who asks, under which rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asker {
    /// Who.
    pub who: Who,
    /// Whether only administrators may change anything (`-restricted`).
    pub restricted: bool,
}

impl Asker {
    /// The cell itself.
    pub const CELL: Asker = Asker { who: Who::CellKey, restricted: false };
}

/// An asker found in the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Known {
    pub(super) id: ViceId,
    /// Its groups, direct and nested, sorted.
    groups: Vec<ViceId>,
}

impl Known {
    /// Finds an asker (docs/protocol ptserver.md "4. Access control inside PR"): a local name that is not in the
    /// database and a foreign one, registered or not, are refused.
    pub(super) fn of(rows: &(impl Rows + ?Sized), asker: &Asker) -> Result<Self, ProtectionError> {
        let id = match &asker.who {
            Who::Anonymous => ViceId::ANONYMOUS,
            Who::CellKey => return Ok(Known::administrators()),
            Who::Local(name) if !name.contains('@') => {
                let id = rows::id_of(rows, name)?;
                // A principal may be called like a group, or like nobody.
                id.filter(|id| !id.is_group() && *id != ViceId::ANONYMOUS).ok_or(Refusal::Permission)?
            }
            Who::Local(_) | Who::Foreign(_) => return Err(Refusal::Permission.into()),
        };
        Ok(Known { id, groups: cps::subdomain(rows, id)? })
    }

    /// Administrators themselves.
    pub(super) fn administrators() -> Self {
        Known { id: ViceId::ADMINISTRATORS, groups: vec![ViceId::ADMINISTRATORS] }
    }

    /// Whether it is that user or in that group.
    pub(super) fn is(&self, id: ViceId) -> bool {
        self.groups.binary_search(&id).is_ok()
    }

    pub(super) fn is_administrator(&self) -> bool {
        self.is(ViceId::ADMINISTRATORS)
    }

    /// Refuses all but administrators.
    pub(super) fn administrator_only(&self) -> Result<(), Refusal> {
        if self.is_administrator() { Ok(()) } else { Err(Refusal::Permission) }
    }
}
