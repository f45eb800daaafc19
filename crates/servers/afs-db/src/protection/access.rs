//! Access rights on protection entries.

use afs_wire::ids::ViceId;

use super::{Entry, Known, Privacy, Refusal, Requester};

/// The kind of access that is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Right {
    /// See the entry.
    Status,
    /// See its memberships.
    Membership,
    /// See the groups it owns.
    Owned,
    /// Add members.
    Add,
    /// Remove members.
    Remove,
    /// Change or delete the entry.
    Change,
}

impl Right {
    /// The privacy bits that give the right to members, and to anyone.
    fn bits(self) -> (u8, u8) {
        match self {
            Right::Status => (Privacy::STATUS_MEMBER, Privacy::STATUS_ANY),
            Right::Membership => (Privacy::MEMBERSHIP_MEMBER, Privacy::MEMBERSHIP_ANY),
            Right::Owned => (0, Privacy::OWNED_ANY),
            Right::Add => (Privacy::ADD_MEMBER, Privacy::ADD_ANY),
            Right::Remove => (Privacy::REMOVE_MEMBER, 0),
            Right::Change => (0, 0),
        }
    }

    fn reads(self) -> bool {
        matches!(self, Right::Status | Right::Membership | Right::Owned)
    }
}

/// Decides (docs/protocol ptserver.md "4. Access control inside PR").
pub(super) fn allows(requester: &Requester, known: &Known, entry: &Entry, right: Right) -> bool {
    if known.is_administrator() || right.reads() && known.is(ViceId::PTSVIEWERS) {
        return true;
    }
    if requester.restricted && !right.reads() {
        return false;
    }
    let (members, anyone) = right.bits();
    let owner = entry.owner.0 != 0 && known.is(entry.owner);
    // A user may read its own entry; adding, removing and changing belong to its owner.
    let itself = known.id == entry.id && right.reads();
    let member = entry.id.is_group() && known.is(entry.id);
    owner || itself || entry.privacy.has(anyone) || member && entry.privacy.has(members)
}

/// Refuses access that is not permitted.
pub(super) fn check(
    requester: &Requester,
    known: &Known,
    entry: &Entry,
    right: Right,
) -> Result<(), Refusal> {
    if allows(requester, known, entry, right) { Ok(()) } else { Err(Refusal::Permission) }
}
