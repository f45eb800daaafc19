//! Slot of `prdb.DB0`: an entry, or the continuation of a member list.

use afs_rpc::TokenGeneration;
use afs_wire::ids::ViceId;

use super::header::BUCKETS;
use crate::protection::{BAD_ID, Entry, Privacy};

/// Length of a slot.
pub(super) const LEN: u32 = 192;
/// Offsets of the chain pointers.
pub(super) const NEXT_BY_ID_AT: u32 = 76;

const KIND: u32 = 0x3f;
const USER: u32 = 0;
const FREE: u32 = 1;
const GROUP: u32 = 2;
const CONTINUATION: u32 = 4;
/// The privacy bits were set explicitly.
const PRIVACY_SET: u32 = 0x40;
/// Offset of the members, in a slot of either kind.
const MEMBERS_AT: usize = 36;
const MEMBERS: usize = 10;
const CONTINUED_MEMBERS: usize = 39;
/// Offset of the groups of a group.
const GROUPS_AT: usize = 120;
const NAME_AT: usize = 128;

/// The bytes of a slot.
pub(super) type Bytes = [u8; LEN as usize];

/// The content of a slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    Free,
    Entry(Box<Record>),
    Continuation(Continuation),
    /// A kind of entry that no server creates.
    Unknown(u32),
}

/// A user or group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) id: ViceId,
    pub(super) group: bool,
    pub(super) name: Vec<u8>,
    pub(super) owner: ViceId,
    pub(super) creator: ViceId,
    pub(super) privacy: Privacy,
    pub(super) group_quota: i32,
    pub(super) user_quota: i32,
    /// Members of a group, groups of a user.
    pub(super) members: Vec<ViceId>,
    /// Address of the list's continuation, or 0.
    pub(super) next: u32,
    /// Groups of a group, if the file has them.
    pub(super) groups: Vec<ViceId>,
    /// Address of that list's continuation, or 0.
    pub(super) next_group: u32,
    pub(super) next_by_id: u32,
    pub(super) next_by_name: u32,
}

/// Further members of one entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Continuation {
    pub(super) of: ViceId,
    pub(super) next: u32,
    pub(super) members: Vec<ViceId>,
}

impl Slot {
    pub(super) fn decode(bytes: &Bytes) -> Self {
        let flags = word(bytes, 0);
        match flags & KIND {
            FREE => Slot::Free,
            USER | GROUP => Slot::Entry(Box::new(Record::decode(bytes, flags))),
            CONTINUATION => Slot::Continuation(Continuation {
                of: id(bytes, 4),
                next: word(bytes, 12),
                members: ids(bytes, MEMBERS_AT, CONTINUED_MEMBERS),
            }),
            other => Slot::Unknown(other),
        }
    }
}

impl Record {
    fn decode(bytes: &Bytes, flags: u32) -> Self {
        let group = flags & KIND == GROUP;
        let default = if group { Privacy::GROUP } else { Privacy::USER };
        let name = bytes[NAME_AT..].split(|byte| *byte == 0).next();
        Record {
            id: id(bytes, 4),
            group,
            name: name.unwrap_or_default().to_vec(),
            owner: id(bytes, 84),
            creator: id(bytes, 88),
            privacy: if flags & PRIVACY_SET != 0 { Privacy((flags >> 16) as u8) } else { default },
            group_quota: word(bytes, 92) as i32,
            user_quota: word(bytes, 96) as i32,
            members: ids(bytes, MEMBERS_AT, MEMBERS),
            next: word(bytes, 12),
            // In files without nested groups these words are always zero.
            groups: if group { ids(bytes, GROUPS_AT, 2) } else { Vec::new() },
            next_group: if group { word(bytes, 116) } else { 0 },
            next_by_id: word(bytes, 76),
            next_by_name: word(bytes, 80),
        }
    }

    /// Converts it to an entry with this name. Whether it is of a foreign cell follows from the name.
    pub(super) fn entry(&self, name: String) -> Entry {
        let foreign_group = self.group && name.contains('@');
        Entry {
            id: self.id,
            name,
            owner: self.owner,
            creator: self.creator,
            privacy: self.privacy,
            group_quota: self.group_quota,
            user_quota: if foreign_group { 0 } else { self.user_quota },
            last_foreign: if foreign_group { self.user_quota.clamp(0, 0xffff) as u32 } else { 0 },
            tokens: TokenGeneration::default(),
        }
    }
}

/// Ids up to the first zero, without the holes left by removed ones.
fn ids(bytes: &Bytes, at: usize, count: usize) -> Vec<ViceId> {
    let all = (0..count).map(|n| id(bytes, at + 4 * n));
    all.take_while(|id| id.0 != 0).filter(|id| *id != BAD_ID).collect()
}

fn id(bytes: &Bytes, at: usize) -> ViceId {
    ViceId(word(bytes, at) as i32)
}

fn word(bytes: &Bytes, at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The hash bucket of a name: from its last byte to its first, times 31.
pub(crate) fn name_bucket(name: &[u8]) -> usize {
    let hash = name
        .iter()
        .rev()
        .fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add((*byte).into()).wrapping_sub(31));
    hash as usize % BUCKETS
}

/// The hash bucket of an id.
pub(super) fn id_bucket(id: ViceId) -> usize {
    id.0.unsigned_abs() as usize % BUCKETS
}
