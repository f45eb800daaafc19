//! What a capability is needed for, and under which keys one may be that serves it.

use afs_datapath::capability::{Access, Group};
use afs_wire::fs::CapabilityAccess;
use afs_wire::ids::Fid;

use crate::identity::TokenId;

/// What a capability is needed for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Use {
    Read,
    Write,
}

impl Use {
    pub fn access(self) -> Access {
        match self {
            Use::Read => Access::READ,
            Use::Write => Access::WRITE,
        }
    }

    /// As the calls for capabilities name it.
    pub fn wanted(self) -> CapabilityAccess {
        match self {
            Use::Read => CapabilityAccess::READ,
            Use::Write => CapabilityAccess::WRITE,
        }
    }
}

/// A file, and for whom and what for a capability is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    pub token: TokenId,
    pub fid: Fid,
    /// The directory in which the file was last seen.
    pub directory: Option<Fid>,
    pub used: Use,
}

/// Under what the table has a capability, or what it knows of one.
pub(super) type Key = (TokenId, Use, Group);

/// Where a capability for a need may be: the file's own first.
pub(super) fn keys(need: &Need) -> impl Iterator<Item = Key> + use<> {
    let Need { token, fid, directory, used } = *need;
    let groups = [Some(Group::File(fid)), directory.map(Group::Directory)];
    groups.into_iter().flatten().map(move |group| (token, used, group))
}

/// Under what it is noted that a need is being asked for: one call for all files of a directory.
pub(super) fn asked_as(need: &Need) -> Key {
    (need.token, need.used, need.directory.map_or(Group::File(need.fid), Group::Directory))
}
