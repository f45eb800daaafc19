//! What is kept of a pinned object, and of its volume, so that it can be read while no server replies: a record of the index.
//!
//! ```text
//! object    1u8, status (84 bytes, as on the wire), last promised u32, link, count u8, count * reader
//! link      length u16, bytes
//! reader    owner, pinned fid 3*u32, rights u32, had a token u8
//! volume    2u8, kind u8, ids 3*u32, flags u32, name, count u8, count * site
//! name      length u8, bytes
//! site      flags u32, 0u8 | 1u8, uuid (16 bytes), unique u32; count u8, count * address u32
//! ```

use std::net::Ipv4Addr;

use afs_wire::fs::Status;
use afs_wire::ids::{Fid, Rights, UnixSeconds, Uuid, VolumeId, VolumeKind};
use afs_wire::vl::{EntryFlags, SiteFlags};
use afs_wire::xdr::{Decode, Encode};
use bytes::Bytes;

use super::pins::PINS_MAX;
use crate::api::TokenOwner;
use crate::cache::codec::{fid_of, owner, put_fid, put_owner, take, text, word};

/// Longest text of a link, in bytes.
const LINK_MAX: usize = 4096;
/// Sites of a volume, and addresses of a server; of more, the first ones are kept.
const SITES_MAX: usize = 64;

/// A record of a pinned object, or of its volume, which has the fid of the whole volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfflineRecord {
    /// Of a file, directory or link.
    Object(OfflineObject),
    /// Of a volume.
    Volume(OfflineVolume),
}

/// An object as its server promised it last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfflineObject {
    /// Its status, without the rights of a caller.
    pub status: Status,
    /// When a promise was last seen to be valid.
    pub promised_at: UnixSeconds,
    /// Text of a link or mount point, else empty; at most 4096 bytes.
    pub link: Bytes,
    /// Who has pinned it.
    pub readers: Vec<OfflineReader>,
}

/// The rights of a user who has pinned an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OfflineReader {
    /// The user.
    pub owner: TokenOwner,
    /// The file or directory that was pinned, to which the object belongs.
    pub root: Fid,
    /// Of a directory, the rights in it; of a file or link, whether the user owns it ([`Rights::ADMINISTER`]).
    pub rights: Rights,
    /// They are those of a token of the user.
    pub had_token: bool,
}

/// A volume as the location service described it last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfflineVolume {
    /// Its kind.
    pub kind: VolumeKind,
    /// The numbers of its group.
    pub ids: [VolumeId; 3],
    /// The flags of the group's entry.
    pub flags: EntryFlags,
    /// Name of the group.
    pub name: String,
    /// The sites of the group.
    pub sites: Vec<OfflineSite>,
}

/// A site of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfflineSite {
    /// What it has.
    pub flags: SiteFlags,
    /// The server, and the version of its list of addresses; `None`: its address is its only name.
    pub server: Option<(Uuid, u32)>,
    /// Its addresses.
    pub addresses: Vec<Ipv4Addr>,
}

impl OfflineRecord {
    pub(in crate::cache) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(128);
        match self {
            OfflineRecord::Object(object) => object.encode(&mut body),
            OfflineRecord::Volume(volume) => volume.encode(&mut body),
        }
        body
    }

    /// The record of these bytes; `None` if they are none.
    pub(in crate::cache) fn decode(mut rest: &[u8]) -> Option<Self> {
        let record = match take::<1>(&mut rest)? {
            [1] => OfflineRecord::Object(OfflineObject::decode(&mut rest)?),
            [2] => OfflineRecord::Volume(OfflineVolume::decode(&mut rest)?),
            _ => return None,
        };
        rest.is_empty().then_some(record)
    }
}

impl OfflineObject {
    fn encode(&self, body: &mut Vec<u8>) {
        body.push(1);
        body.extend(self.status.to_bytes());
        body.extend(self.promised_at.0.to_be_bytes());
        let link = self.link.get(..self.link.len().min(LINK_MAX)).unwrap_or_default();
        body.extend((link.len() as u16).to_be_bytes());
        body.extend(link);
        body.push(self.readers.len().min(PINS_MAX) as u8);
        for OfflineReader { owner, root, rights, had_token } in self.readers.iter().take(PINS_MAX) {
            put_owner(body, Some(*owner));
            put_fid(body, *root);
            body.extend(rights.0.to_be_bytes());
            body.push(u8::from(*had_token));
        }
    }

    fn decode(rest: &mut &[u8]) -> Option<Self> {
        let status = Status::from_bytes(&take::<{ Status::WIRE_LEN }>(rest)?).ok()?;
        let promised_at = UnixSeconds(word(rest)?);
        let length = usize::from(take(rest).map(u16::from_be_bytes)?);
        let (link, later) = rest.split_at_checked(length).filter(|_| length <= LINK_MAX)?;
        let link = Bytes::copy_from_slice(link);
        *rest = later;
        let [count] = take(rest)?;
        let mut readers = Vec::new();
        for _ in 0..count {
            let (owner, root, rights) = (owner(rest)??, fid_of(rest)?, Rights(word(rest)?));
            let had_token = match take::<1>(rest)? {
                [0] => false,
                [1] => true,
                _ => return None,
            };
            readers.push(OfflineReader { owner, root, rights, had_token });
        }
        (readers.len() <= PINS_MAX).then_some(OfflineObject { status, promised_at, link, readers })
    }
}

impl OfflineVolume {
    fn encode(&self, body: &mut Vec<u8>) {
        body.extend([2, self.kind as u8]);
        self.ids.iter().for_each(|id| body.extend(id.0.to_be_bytes()));
        body.extend(self.flags.0.to_be_bytes());
        let name = self.name.as_bytes().get(..self.name.len().min(255)).unwrap_or_default();
        body.push(name.len() as u8);
        body.extend(name);
        body.push(self.sites.len().min(SITES_MAX) as u8);
        for OfflineSite { flags, server, addresses } in self.sites.iter().take(SITES_MAX) {
            body.extend(flags.0.to_be_bytes());
            match server {
                None => body.push(0),
                Some((uuid, unique)) => {
                    body.push(1);
                    body.extend(uuid.0);
                    body.extend(unique.to_be_bytes());
                }
            }
            body.push(addresses.len().min(SITES_MAX) as u8);
            addresses.iter().take(SITES_MAX).for_each(|address| body.extend(address.octets()));
        }
    }

    fn decode(rest: &mut &[u8]) -> Option<Self> {
        let [kind] = take(rest)?;
        let kind = *VolumeKind::ALL.get(usize::from(kind))?;
        let ids = [VolumeId(word(rest)?), VolumeId(word(rest)?), VolumeId(word(rest)?)];
        let flags = EntryFlags(word(rest)?);
        let name = std::str::from_utf8(text(rest)?).ok()?.to_owned();
        let count = few(rest)?;
        let mut sites = Vec::new();
        for _ in 0..count {
            let flags = SiteFlags(word(rest)?);
            let server = match take::<1>(rest)? {
                [0] => None,
                [1] => Some((Uuid(take(rest)?), word(rest)?)),
                _ => return None,
            };
            let addresses = few(rest)?;
            let addresses = (0..addresses).map(|_| take::<4>(rest).map(Ipv4Addr::from));
            sites.push(OfflineSite { flags, server, addresses: addresses.collect::<Option<_>>()? });
        }
        Some(OfflineVolume { kind, ids, flags, name, sites })
    }
}

/// A number of sites or addresses.
fn few(rest: &mut &[u8]) -> Option<u8> {
    let [count] = take(rest)?;
    (usize::from(count) <= SITES_MAX).then_some(count)
}

/// Fuzz target: decodes arbitrary bytes.
#[cfg(feature = "fuzzing")]
pub(in crate::cache) fn read_any(bytes: &[u8]) {
    if let Some(record) = OfflineRecord::decode(bytes) {
        assert_eq!(OfflineRecord::decode(&record.encode()), Some(record));
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::fs::FileKind;
    use afs_wire::ids::{DataVersion, Uniquifier, VnodeId};

    use super::*;

    fn records() -> [OfflineRecord; 2] {
        let root = Fid::new(VolumeId(7), VnodeId(1), Uniquifier(1));
        let reader = |owner| OfflineReader { owner, root, rights: Rights::READ, had_token: true };
        let object = OfflineObject {
            status: Status { kind: FileKind::Symlink, data_version: DataVersion(3), ..Status::default() },
            promised_at: UnixSeconds(1_795_233_678),
            link: Bytes::from_static(b"a/\xff"),
            readers: vec![
                reader(TokenOwner::Uid(7)),
                reader(TokenOwner::Session { id: 1 << 100, uid: 1001 }),
            ],
        };
        let site = |server, addresses: &[[u8; 4]]| OfflineSite {
            flags: SiteFlags(4),
            server,
            addresses: addresses.iter().map(|octets| Ipv4Addr::from(*octets)).collect(),
        };
        let volume = OfflineVolume {
            kind: VolumeKind::ReadOnly,
            ids: [VolumeId(7), VolumeId(8), VolumeId(0)],
            flags: EntryFlags(0x3000),
            name: "proj".into(),
            sites: vec![
                site(Some((Uuid([5; 16]), 9)), &[[192, 0, 2, 1], [192, 0, 2, 2]]),
                site(None, &[[192, 0, 2, 3]]),
            ],
        };
        [OfflineRecord::Object(object), OfflineRecord::Volume(volume)]
    }

    #[test]
    fn a_record_is_read_as_it_was_written_or_not_at_all() {
        for record in records() {
            let whole = record.encode();
            assert_eq!(OfflineRecord::decode(&whole), Some(record));
            for end in 0..whole.len() {
                assert_eq!(OfflineRecord::decode(whole.get(..end).unwrap()), None, "{end}");
            }
            assert_eq!(OfflineRecord::decode(&[&whole[..], &[0]].concat()), None);
        }
        assert_eq!(OfflineRecord::decode(&[3]), None);
    }
}
