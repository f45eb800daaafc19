//! Entry of a volume group, with servers given by address.

use super::{EntryFlags, NameChars, SiteFlags};
use crate::ids::{PartitionNumber, VolumeId, VolumeKind};
use crate::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

/// Most sites of an entry.
pub const SITES_MAX: usize = 13;
/// Most sites of an entry in its old form.
pub const OLD_SITES_MAX: usize = 8;

/// A site of a volume of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The server's first registered address.
    pub server: Ipv4Addr,
    /// The server's partition.
    pub partition: PartitionNumber,
    /// Kind of volume there.
    pub flags: SiteFlags,
}

/// `nvldbentry`, 476 bytes: a volume group and its sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Name of the read-write volume.
    pub name: NameChars,
    /// Its sites. Reserved elements on the wire are zero.
    pub sites: BoundedVec<Site, SITES_MAX>,
    /// Numbers of the read-write, read-only and backup volume; 0 is none.
    pub ids: [VolumeId; 3],
    /// Temporary clone of a release in progress; 0 is none.
    pub clone_id: VolumeId,
    /// Which volumes exist, and the operation that holds the entry.
    pub flags: EntryFlags,
    /// In attribute lists: what matched, `site flag << 16 | site index`.
    pub match_index: i32,
}

impl Entry {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 476;

    /// Number of the group's volume of this kind; 0 is none.
    pub fn id(&self, kind: VolumeKind) -> VolumeId {
        kind.of(self.ids)
    }
}

/// `vldbentry`, 384 bytes: the old form, with eight sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OldEntry {
    /// Name of the read-write volume.
    pub name: NameChars,
    /// Once the volume's type; not used.
    pub kind: i32,
    /// Its sites.
    pub sites: BoundedVec<Site, OLD_SITES_MAX>,
    /// Numbers of the read-write, read-only and backup volume; 0 is none.
    pub ids: [VolumeId; 3],
    /// Temporary clone of a release in progress; 0 is none.
    pub clone_id: VolumeId,
    /// Which volumes exist, and the operation that holds the entry.
    pub flags: EntryFlags,
}

impl OldEntry {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 384;
}

impl From<OldEntry> for Entry {
    fn from(old: OldEntry) -> Self {
        let OldEntry { name, kind: _, sites, ids, clone_id, flags } = old;
        Self { name, sites: BoundedVec::first_of(sites), ids, clone_id, flags, match_index: 0 }
    }
}

impl From<Entry> for OldEntry {
    /// Sites after the eighth are lost.
    fn from(entry: Entry) -> Self {
        let Entry { name, sites, ids, clone_id, flags, match_index: _ } = entry;
        Self { name, kind: 0, sites: BoundedVec::first_of(sites), ids, clone_id, flags }
    }
}

/// Sites are encoded as columns: all servers, all partitions, all flags; unused elements are zero.
fn encode_sites<const N: usize>(sites: &BoundedVec<Site, N>, out: &mut Vec<u8>) {
    (sites.len() as u32).encode(out);
    encode_column::<N, _>(sites.iter().map(|site| site.server.into()), out);
    encode_column::<N, _>(sites.iter().map(|site| site.partition.0 as u32), out);
    encode_column::<N, _>(sites.iter().map(|site| site.flags.0), out);
}

/// One column, padded with zeros to `N` words.
pub(super) fn encode_column<const N: usize, I: Iterator<Item = u32>>(values: I, out: &mut Vec<u8>) {
    let mut column = [0; N];
    for (to, value) in column.iter_mut().zip(values) {
        *to = value;
    }
    column.encode(out);
}

fn decode_sites<const N: usize>(r: &mut Reader<'_>) -> Result<BoundedVec<Site, N>, DecodeError> {
    let count = r.count(N)?;
    let (servers, partitions, flags) =
        (<[u32; N]>::decode(r)?, <[u32; N]>::decode(r)?, <[u32; N]>::decode(r)?);
    let rows = servers.into_iter().zip(partitions).zip(flags).take(count);
    Ok(BoundedVec::first_of(rows.map(|((server, partition), flags)| Site {
        server: server.into(),
        partition: PartitionNumber(partition as i32),
        flags: SiteFlags(flags),
    })))
}

impl Encode for Entry {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        encode_sites(&self.sites, out);
        self.ids.encode(out);
        self.clone_id.encode(out);
        self.flags.encode(out);
        self.match_index.encode(out);
        [0u32; 8].encode(out);
    }
}

impl Decode for Entry {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let entry = Self {
            name: Decode::decode(r)?,
            sites: decode_sites(r)?,
            ids: Decode::decode(r)?,
            clone_id: Decode::decode(r)?,
            flags: Decode::decode(r)?,
            match_index: Decode::decode(r)?,
        };
        let _spares = <[u32; 8]>::decode(r)?;
        Ok(entry)
    }
}

impl Encode for OldEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        self.kind.encode(out);
        encode_sites(&self.sites, out);
        self.ids.encode(out);
        self.clone_id.encode(out);
        self.flags.encode(out);
    }
}

impl Decode for OldEntry {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: Decode::decode(r)?,
            kind: Decode::decode(r)?,
            sites: decode_sites(r)?,
            ids: Decode::decode(r)?,
            clone_id: Decode::decode(r)?,
            flags: Decode::decode(r)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let site =
            Site { server: [10, 0, 0, 1].into(), partition: PartitionNumber(1), flags: SiteFlags::RW_VOLUME };
        Entry {
            name: NameChars::new(b"root.cell").unwrap(),
            sites: BoundedVec::first_of([site]),
            ids: [536870915, 536870916, 536870917].map(VolumeId),
            flags: EntryFlags::RW_EXISTS,
            ..Entry::default()
        }
    }

    #[test]
    fn sizes_and_places() {
        let wire = entry().to_bytes();
        assert_eq!(wire.len(), Entry::WIRE_LEN);
        assert_eq!(wire[..4], [0, 0, 0, b'r']);
        assert_eq!(wire[260..268], [0, 0, 0, 1, 10, 0, 0, 1]);
        assert_eq!(wire[264 + 52 + 3], 1, "partition column");
        assert_eq!(wire[264 + 104 + 3], 4, "flags column");
        assert_eq!(Entry::from_bytes(&wire), Ok(entry()));
        assert_eq!(OldEntry::default().to_bytes().len(), OldEntry::WIRE_LEN);
    }

    #[test]
    fn the_old_form_keeps_what_fits() {
        let old = OldEntry::from(entry());
        assert_eq!(OldEntry::from_bytes(&old.to_bytes()).as_ref(), Ok(&old));
        assert_eq!(Entry::from(old), entry());
    }

    #[test]
    fn more_sites_than_there_is_room_for_are_refused() {
        let mut wire = entry().to_bytes();
        wire[263] = 14;
        assert_eq!(Entry::from_bytes(&wire), Err(DecodeError::TooLong { limit: 13, got: 14 }));
    }
}
