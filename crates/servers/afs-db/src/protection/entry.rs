//! Protection entry: a user or group as stored.

use afs_rpc::TokenGeneration;
use afs_wire::ids::ViceId;

use super::{ProtectionError, Refusal};

/// Groups that a new user may create, and the most that an administrator gets back by deleting groups
/// (docs/protocol ptserver.md "5. Creation, naming, ownership").
pub const QUOTA_DEFAULT: i32 = 20;
/// Users of a foreign cell that may register, for a new group of that cell (docs/protocol ptserver.md "2.
/// Ids").
pub const FOREIGN_QUOTA_DEFAULT: i32 = 30;
/// The null id: OpenAFS's mark for removed memberships.
pub const BAD_ID: ViceId = ViceId(i32::MIN);

/// The eight privacy bits of an entry (docs/protocol ptserver.md "4. Access control inside PR").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Privacy(pub u8);

impl Privacy {
    /// Any caller may see the entry.
    pub const STATUS_ANY: u8 = 0x80;
    /// Members may see the entry.
    pub const STATUS_MEMBER: u8 = 0x40;
    /// Any caller may see what it owns.
    pub const OWNED_ANY: u8 = 0x20;
    /// Any caller may see its memberships.
    pub const MEMBERSHIP_ANY: u8 = 0x10;
    /// Members may see its memberships.
    pub const MEMBERSHIP_MEMBER: u8 = 0x08;
    /// Any caller may add members.
    pub const ADD_ANY: u8 = 0x04;
    /// Members may add members.
    pub const ADD_MEMBER: u8 = 0x02;
    /// Members may remove members.
    pub const REMOVE_MEMBER: u8 = 0x01;

    /// Default of a new user: `S----`.
    pub const USER: Privacy = Privacy(Self::STATUS_ANY);
    /// Default of a new group: `S-M--`.
    pub const GROUP: Privacy = Privacy(Self::STATUS_ANY | Self::MEMBERSHIP_ANY);

    pub(super) fn of_new(id: ViceId) -> Self {
        if id.is_group() { Self::GROUP } else { Self::USER }
    }

    pub(super) fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

/// A user or group. Members are separate rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Positive for users, negative for groups.
    pub id: ViceId,
    /// 1 to 63 bytes, without upper-case letters of ASCII.
    pub name: String,
    /// The owner, who may change it; 0 is administrators alone.
    pub owner: ViceId,
    /// The creator.
    pub creator: ViceId,
    /// Its privacy bits.
    pub privacy: Privacy,
    /// Number of further groups that a user may create; for a foreign cell's group, of further users that may
    /// register.
    pub group_quota: i32,
    /// Kept for the tools.
    pub user_quota: i32,
    /// Of a foreign cell's group: the number of its last user.
    pub last_foreign: u32,
    /// Of a user: the generation of the tokens that count.
    pub tokens: TokenGeneration,
}

impl Entry {
    /// A new entry with default privacy and quotas.
    pub(super) fn new(id: ViceId, name: String, owner: ViceId, creator: ViceId) -> Self {
        let quota = if id.is_group() { 0 } else { QUOTA_DEFAULT };
        Entry {
            id,
            name,
            owner,
            creator,
            privacy: Privacy::of_new(id),
            group_quota: quota,
            user_quota: quota,
            last_foreign: 0,
            tokens: TokenGeneration::default(),
        }
    }

    /// Whether it is a user of another cell, or the group of all of them.
    pub fn is_foreign(&self) -> bool {
        self.name.contains('@')
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        // A user whose tokens were never revoked has the row that earlier versions read.
        let is_revoked = self.tokens != TokenGeneration::default();
        let mut row =
            vec![if is_revoked { FORMAT_REVOKED } else { FORMAT }, self.privacy.0, self.name.len() as u8];
        row.extend_from_slice(self.name.as_bytes());
        for word in [self.owner.0, self.creator.0, self.group_quota, self.user_quota] {
            row.extend_from_slice(&word.to_be_bytes());
        }
        row.extend_from_slice(&self.last_foreign.to_be_bytes());
        if is_revoked {
            row.extend_from_slice(&self.tokens.0.to_be_bytes());
        }
        row
    }

    pub(super) fn decode(id: ViceId, row: &[u8]) -> Result<Self, ProtectionError> {
        Self::read(id, row).ok_or_else(|| Refusal::Damaged.into())
    }

    fn read(id: ViceId, row: &[u8]) -> Option<Self> {
        let (head, rest) = row.split_first_chunk::<3>()?;
        let (name, words) = rest.split_at_checked(head[2].into())?;
        let (words, tokens) = words.split_first_chunk::<20>()?;
        let tokens = match (head[0], tokens) {
            (FORMAT, []) => 0,
            (FORMAT_REVOKED, tokens) => u64::from_be_bytes(tokens.try_into().ok()?),
            _ => return None,
        };
        let word = |n: usize| {
            i32::from_be_bytes([words[4 * n], words[4 * n + 1], words[4 * n + 2], words[4 * n + 3]])
        };
        Some(Entry {
            id,
            name: String::from_utf8(name.to_vec()).ok()?,
            owner: ViceId(word(0)),
            creator: ViceId(word(1)),
            privacy: Privacy(head[1]),
            group_quota: word(2),
            user_quota: word(3),
            last_foreign: word(4) as u32,
            tokens: TokenGeneration(tokens),
        })
    }
}

/// First byte of a stored entry.
const FORMAT: u8 = 1;
/// First byte of one that ends with the generation of the user's tokens.
const FORMAT_REVOKED: u8 = 2;

/// An entry with the number of its memberships.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The entry.
    pub entry: Entry,
    /// Members of a group, groups of a user.
    pub count: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_and_damaged_ones_are_told() {
        let entry = Entry::new(ViceId(-206), "alice:friends".into(), ViceId(2), ViceId(2));
        let revoked = Entry { tokens: TokenGeneration(1_700_000_000), ..entry.clone() };
        for entry in [entry, revoked] {
            let row = entry.encode();
            assert_eq!(Entry::decode(entry.id, &row), Ok(entry.clone()));
            for len in 0..row.len() {
                assert_eq!(Entry::decode(entry.id, &row[..len]), Err(Refusal::Damaged.into()), "{len}");
            }
            for format in [0, 3 - row[0], 9] {
                let other = [&[format], &row[1..]].concat();
                assert_eq!(Entry::decode(entry.id, &other), Err(Refusal::Damaged.into()), "{format}");
            }
        }
    }
}
