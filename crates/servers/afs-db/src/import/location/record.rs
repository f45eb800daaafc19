//! Entry record of `vldb.DB0`.

use crate::SITES_MAX;

/// Length of an entry, in all versions.
pub(super) const LEN: u32 = 148;

/// The slot is free.
const FREE: u32 = 0x1;
/// The entry is marked as deleted.
const DELETED: u32 = 0x2;
/// Not an entry, but an extension block of the server table.
pub(super) const BLOCK: u32 = 0x8;
/// Flags with a meaning outside of the file.
const MEANT: u32 = 0xf000 | crate::entry_flags::OPERATIONS;
/// The null server number.
const NO_SERVER: u8 = 255;

/// One entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) ids: [u32; 3],
    pub(super) flags: u32,
    pub(super) locked: u32,
    pub(super) clone: u32,
    pub(super) next_by_id: [u32; 3],
    pub(super) next_by_name: u32,
    /// Without trailing zeros; arbitrary bytes.
    pub(super) name: Vec<u8>,
    /// Server number, partition, flags.
    pub(super) sites: Vec<[u8; 3]>,
}

/// The content of a slot.
#[derive(Debug)]
pub(super) enum Slot {
    Entry(Record),
    Free,
    Deleted,
}

/// Offsets of the fields that differ between versions.
struct Layout {
    next: usize,
    name: usize,
    sites: usize,
    site_count: usize,
}

const OLD: Layout = Layout { next: 32, name: 56, sites: 122, site_count: 8 };
const NEW: Layout = Layout { next: 28, name: 44, sites: 109, site_count: SITES_MAX };
const NAME_LEN: usize = 65;

impl Slot {
    pub(super) fn decode(version: u32, bytes: &[u8; LEN as usize]) -> Self {
        let flags = word(bytes, 12);
        if flags & FREE != 0 {
            return Slot::Free;
        }
        if flags & DELETED != 0 {
            return Slot::Deleted;
        }
        let layout = if version == 2 { &OLD } else { &NEW };
        let name = bytes[layout.name..layout.name + NAME_LEN].split(|byte| *byte == 0).next();
        Slot::Entry(Record {
            ids: [word(bytes, 0), word(bytes, 4), word(bytes, 8)],
            flags: flags & MEANT,
            locked: word(bytes, 20),
            clone: word(bytes, 24),
            next_by_id: [0, 4, 8].map(|n| word(bytes, layout.next + n)),
            next_by_name: word(bytes, layout.next + 12),
            name: name.unwrap_or_default().to_vec(),
            sites: sites(layout, bytes),
        })
    }
}

fn sites(layout: &Layout, bytes: &[u8; LEN as usize]) -> Vec<[u8; 3]> {
    let at = |n: usize| layout.sites + n;
    let count = layout.site_count;
    (0..count)
        .map(|n| [bytes[at(n)], bytes[at(n + count)], bytes[at(n + 2 * count)]])
        .take_while(|site| site[0] != NO_SERVER)
        .collect()
}

fn word(bytes: &[u8; LEN as usize], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The hash bucket of a name: from its last byte to its first, times 63.
pub(crate) fn name_bucket(name: &[u8]) -> usize {
    let hash = name
        .iter()
        .rev()
        .fold(0u32, |hash, byte| hash.wrapping_mul(63).wrapping_add((*byte).into()).wrapping_sub(63));
    hash as usize % super::header::BUCKETS
}

/// The possible hash buckets of an id: of its absolute value as a signed number, or, in newer code, of the
/// number itself.
pub(super) fn id_buckets(id: u32) -> [usize; 2] {
    let buckets = super::header::BUCKETS as u32;
    [((id as i32).unsigned_abs() % buckets) as usize, (id % buckets) as usize]
}
