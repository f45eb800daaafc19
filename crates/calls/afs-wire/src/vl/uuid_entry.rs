//! Entry of a volume group, with servers given by UUID: read by clients.

use super::entry::encode_column;
use super::{EntryFlags, NameChars, SITES_MAX, SiteFlags};
use crate::ids::{PartitionNumber, Uuid, VolumeId, VolumeKind};
use crate::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

/// A site of a volume of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UuidSite {
    /// The server. When `flags` lacks [`SiteFlags::UUID`], the first four bytes are its address and the rest is zero.
    pub server: Uuid,
    /// Version of the server's address list: after a change clients must read the addresses again.
    pub unique: u32,
    /// The server's partition.
    pub partition: PartitionNumber,
    /// Kind of volume there.
    pub flags: SiteFlags,
}

impl UuidSite {
    /// The address of a server that registered no UUID.
    pub fn plain_address(&self) -> Option<Ipv4Addr> {
        let [a, b, c, d, ..] = self.server.0;
        (!self.flags.contains(SiteFlags::UUID)).then_some(Ipv4Addr::new(a, b, c, d))
    }

    /// The pseudo-UUID of a server without UUID.
    pub fn uuid_of_address(address: Ipv4Addr) -> Uuid {
        let [a, b, c, d] = address.octets();
        Uuid([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }
}

/// `uvldbentry`, 1048 bytes: a volume group and its sites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UuidEntry {
    /// Name of the read-write volume.
    pub name: NameChars,
    /// Its sites.
    pub sites: BoundedVec<UuidSite, SITES_MAX>,
    /// Numbers of the read-write, read-only and backup volume; 0 is none.
    pub ids: [VolumeId; 3],
    /// Temporary clone of a release in progress; 0 is none.
    pub clone_id: VolumeId,
    /// Which volumes exist, and the operation that holds the entry.
    pub flags: EntryFlags,
    /// Not used.
    pub match_index: i32,
}

impl UuidEntry {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 1048;

    /// Number of the group's volume of this kind; 0 is none.
    pub fn id(&self, kind: VolumeKind) -> VolumeId {
        kind.of(self.ids)
    }
}

impl Encode for UuidEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        self.name.encode(out);
        (self.sites.len() as u32).encode(out);
        for index in 0..SITES_MAX {
            self.sites.get(index).map_or(Uuid::NIL, |site| site.server).encode(out);
        }
        encode_column::<SITES_MAX, _>(self.sites.iter().map(|site| site.unique), out);
        encode_column::<SITES_MAX, _>(self.sites.iter().map(|site| site.partition.0 as u32), out);
        encode_column::<SITES_MAX, _>(self.sites.iter().map(|site| site.flags.0), out);
        self.ids.encode(out);
        self.clone_id.encode(out);
        self.flags.encode(out);
        self.match_index.encode(out);
        [0u32; 8].encode(out);
    }
}

impl Decode for UuidEntry {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let name = Decode::decode(r)?;
        let count = r.count(SITES_MAX)?;
        let servers = <[Uuid; SITES_MAX]>::decode(r)?;
        let uniques = <[u32; SITES_MAX]>::decode(r)?;
        let partitions = <[PartitionNumber; SITES_MAX]>::decode(r)?;
        let flags = <[SiteFlags; SITES_MAX]>::decode(r)?;
        let rows = servers.into_iter().zip(uniques).zip(partitions).zip(flags).take(count);
        let sites =
            rows.map(|(((server, unique), partition), flags)| UuidSite { server, unique, partition, flags });
        let entry = Self {
            name,
            sites: BoundedVec::first_of(sites),
            ids: Decode::decode(r)?,
            clone_id: Decode::decode(r)?,
            flags: Decode::decode(r)?,
            match_index: Decode::decode(r)?,
        };
        let _spares = <[u32; 8]>::decode(r)?;
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_places() {
        let address = Ipv4Addr::new(10, 0, 0, 1);
        let site = UuidSite {
            server: UuidSite::uuid_of_address(address),
            unique: 0,
            partition: PartitionNumber(2),
            flags: SiteFlags::RO_VOLUME,
        };
        let entry = UuidEntry {
            name: NameChars::new(b"root.afs").unwrap(),
            sites: BoundedVec::first_of([site]),
            flags: EntryFlags::RO_EXISTS,
            ..UuidEntry::default()
        };
        let wire = entry.to_bytes();
        assert_eq!(wire.len(), UuidEntry::WIRE_LEN);
        assert_eq!(wire[260..268], [0, 0, 0, 1, 10, 0, 0, 1]);
        assert_eq!(wire[264 + 13 * 44 + 52 + 3], 2, "partition column");
        assert_eq!(UuidEntry::from_bytes(&wire), Ok(entry));
        assert_eq!(site.plain_address(), Some(address));
    }
}
