//! Location entry: a volume group and the sites of its volumes.

use std::net::Ipv4Addr;

use afs_wire::ids::{KindNumber, PartitionId, UnixSeconds, VolumeId, VolumeKind};

use crate::{LocationError, Refusal, Server, ServerSlot};

/// Most sites of an entry (docs/protocol vldb.md "2. Structures").
pub const SITES_MAX: usize = 13;
/// Longest name of an entry, in bytes (docs/protocol vldb.md "4. Semantics").
pub const NAME_MAX: usize = 64;

/// Bits of [`Entry::flags`] (docs/protocol vldb.md "2.1 Flags").
pub mod entry_flags {
    /// The read-write volume exists.
    pub const RW_EXISTS: u32 = 0x1000;
    /// A read-only volume exists.
    pub const RO_EXISTS: u32 = 0x2000;
    /// The backup volume exists.
    pub const BACKUP_EXISTS: u32 = 0x4000;
    /// The operation bit of a move.
    pub const MOVE: u32 = 0x10;
    /// The operation bit of a release.
    pub const RELEASE: u32 = 0x20;
    /// The operation bit of a backup.
    pub const BACKUP: u32 = 0x40;
    /// The operation bit of a deletion or an added site.
    pub const DELETE: u32 = 0x80;
    /// The operation bit of a dump or restore.
    pub const DUMP: u32 = 0x100;
    /// All operation bits.
    pub const OPERATIONS: u32 = MOVE | RELEASE | BACKUP | DELETE | DUMP;
}

/// Bits of [`Site::flags`] (docs/protocol vldb.md "2.1 Flags").
pub mod site_flags {
    /// The site has the new state of the release in progress.
    pub const NEW_RELEASE: u8 = 0x01;
    /// A read-only volume is here.
    pub const READ_ONLY: u8 = 0x02;
    /// The read-write volume is here.
    pub const READ_WRITE: u8 = 0x04;
    /// The backup volume is here.
    pub const BACKUP: u8 = 0x08;
    /// In replies only: the site's server is given by its UUID.
    pub const UUID: u8 = 0x10;
    /// Nothing has been released to this site yet.
    pub const DO_NOT_USE: u8 = 0x20;
}

/// Decodes a volume type in a look-up: 0, 1, 2, or -1 for any (docs/protocol vldb.md "1. Endpoint and
/// conventions"). Others are [`Refusal::BadVolumeType`].
pub fn kind_selector(number: KindNumber) -> Result<Option<VolumeKind>, Refusal> {
    match number.check() {
        None if number != KindNumber::ANY => Err(Refusal::BadVolumeType),
        kind => Ok(kind),
    }
}

/// A site of a volume of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// The server.
    pub server: ServerSlot,
    /// The partition on that server.
    pub partition: PartitionId,
    /// [`site_flags`].
    pub flags: u8,
}

/// A stored entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Name of the read-write volume, without suffix.
    pub name: String,
    /// Ids by [`VolumeKind::index`]; 0 if there is none.
    pub ids: [VolumeId; 3],
    /// Id of the temporary clone of a release in progress, else 0. Kept for the tools.
    pub clone: VolumeId,
    /// [`entry_flags`]; the tools set them, the database does not correct them.
    pub flags: u32,
    /// Time of locking; 0 if unlocked.
    pub locked: UnixSeconds,
    /// One to [`SITES_MAX`] sites.
    pub sites: Vec<Site>,
}

impl Entry {
    /// The id of one kind, if the entry has it.
    pub fn id(&self, kind: VolumeKind) -> Option<VolumeId> {
        Some(self.ids[kind.index()]).filter(|id| id.0 != 0)
    }

    /// Whether `id` is the id of `kind`, or of any kind.
    pub(crate) fn has(&self, id: VolumeId, kind: Option<VolumeKind>) -> bool {
        match kind {
            Some(kind) => self.ids[kind.index()] == id,
            None => self.ids.contains(&id),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = vec![FORMAT, self.name.len() as u8, self.sites.len() as u8];
        row.extend_from_slice(self.name.as_bytes());
        for word in [self.ids[0].0, self.ids[1].0, self.ids[2].0, self.clone.0, self.flags, self.locked.0] {
            row.extend_from_slice(&word.to_be_bytes());
        }
        for site in &self.sites {
            row.extend_from_slice(&[site.server.0, site.partition.0, site.flags]);
        }
        row
    }

    pub(crate) fn decode(row: &[u8]) -> Result<Self, LocationError> {
        Self::read(row).ok_or_else(|| Refusal::Damaged.into())
    }

    fn read(row: &[u8]) -> Option<Self> {
        let (head, rest) = row.split_at_checked(3)?;
        let (name, rest) = rest.split_at_checked(head[1] as usize)?;
        let (words, sites) = rest.split_at_checked(24)?;
        if head[0] != FORMAT || sites.len() != 3 * head[2] as usize {
            return None;
        }
        let word = |n: usize| {
            u32::from_be_bytes([words[4 * n], words[4 * n + 1], words[4 * n + 2], words[4 * n + 3]])
        };
        Some(Entry {
            name: String::from_utf8(name.to_vec()).ok()?,
            ids: [VolumeId(word(0)), VolumeId(word(1)), VolumeId(word(2))],
            clone: VolumeId(word(3)),
            flags: word(4),
            locked: UnixSeconds(word(5)),
            sites: sites
                .chunks_exact(3)
                .map(|site| Site {
                    server: ServerSlot(site[0]),
                    partition: PartitionId(site[1]),
                    flags: site[2],
                })
                .collect(),
        })
    }
}

/// First byte of a stored entry.
const FORMAT: u8 = 1;

/// An entry with the servers of its sites.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// Row number, which `ListEntry` uses as index.
    pub row: u32,
    /// The entry.
    pub entry: Entry,
    /// The server of each site, in the order of [`Entry::sites`].
    pub servers: Vec<Server>,
}

/// A site as proposed by a tool; unchecked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProposedSite {
    /// Any address of the server.
    pub address: Ipv4Addr,
    /// Partition number; 0 to 255 are legal.
    pub partition: i32,
    /// Site flags; 0 to 0x80 are legal.
    pub flags: i32,
}

/// An entry as proposed by a tool; unchecked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposal {
    /// Name of the read-write volume, without suffix.
    pub name: String,
    /// Ids by [`VolumeKind::index`]; 0 if there is none.
    pub ids: [VolumeId; 3],
    /// Id of a temporary clone, or 0.
    pub clone: VolumeId,
    /// [`entry_flags`].
    pub flags: u32,
    /// The sites.
    pub sites: Vec<ProposedSite>,
}

/// Checks a new name: 1 to [`NAME_MAX`] letters, digits, `.`, `-`, `_`, and not only digits, which would read
/// as an id.
pub fn check_name(name: &str) -> Result<(), Refusal> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let digits_only = name.bytes().all(|byte| byte.is_ascii_digit());
    if name.len() > NAME_MAX || digits_only || !name.bytes().all(legal) {
        return Err(Refusal::BadName);
    }
    Ok(())
}

/// The stored name for a looked-up one: one `.readonly` or `.backup` is stripped if something remains.
pub fn base_name(name: &str) -> &str {
    [".readonly", ".backup"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix).filter(|base| !base.is_empty()))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_entry_reads_back() {
        let entry = Entry {
            name: "home.alice".into(),
            ids: [VolumeId(0x2000_0000), VolumeId(0x2000_0001), VolumeId(0)],
            clone: VolumeId(9),
            flags: entry_flags::RW_EXISTS,
            locked: UnixSeconds(77),
            sites: vec![Site {
                server: ServerSlot(3),
                partition: PartitionId(1),
                flags: site_flags::READ_WRITE,
            }],
        };
        let row = entry.encode();
        assert_eq!(Entry::decode(&row), Ok(entry));
        for cut in 0..row.len() {
            assert_eq!(Entry::decode(&row[..cut]), Err(Refusal::Damaged.into()));
        }
    }

    #[test]
    fn names() {
        for good in ["root.cell", "a", "A-b_c.9", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "123", "a b", "a/b", "ä", &"x".repeat(65)] {
            assert_eq!(check_name(bad), Err(Refusal::BadName), "{bad}");
        }
    }

    #[test]
    fn suffixes_come_off_once() {
        let table = [
            ("a.readonly", "a"),
            ("a.backup", "a"),
            ("a.backup.readonly", "a.backup"),
            (".readonly", ".readonly"),
            ("a.read", "a.read"),
        ];
        for (name, base) in table {
            assert_eq!(base_name(name), base);
        }
    }
}
