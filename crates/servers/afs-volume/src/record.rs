//! Vnode record: the attributes of a file, directory or link.

use std::sync::Arc;

use afs_wire::acl::Acl;
use afs_wire::fs::FileKind;
use afs_wire::ids::{
    DataVersion, Fid, FileTime, Mode, Rights, Uniquifier, UnixSeconds, ViceId, VnodeId, VolumeId,
};
use bytes::Bytes;

use crate::codec::{BadRecord, Decoded, Fields, Put};
use crate::cuts::Cuts;
use crate::ids::ContentId;

/// The attributes of a file, directory or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnodeRecord {
    /// Its number.
    pub vnode: VnodeId,
    /// Its uniquifier, which distinguishes the successive uses of that number.
    pub unique: Uniquifier,
    /// File, directory or link; mount points are links.
    pub kind: FileKind,
    /// Number of changes of the data.
    pub data_version: DataVersion,
    /// Length of the data in bytes.
    pub length: u64,
    /// The user who last changed the data.
    pub author: ViceId,
    /// The owner.
    pub owner: ViceId,
    /// Unix group number, uninterpreted.
    pub group: u32,
    /// Permission bits.
    pub mode: Mode,
    /// Names of a file; 2 + subdirectories of a directory.
    pub link_count: u32,
    /// Its directory. The root directory is its own parent.
    pub parent: VnodeId,
    /// Uniquifier of that directory.
    pub parent_unique: Uniquifier,
    /// Modification time as shown to users.
    pub client_mod_time: FileTime,
    /// Time of the last change, by the store's clock.
    pub server_mod_time: FileTime,
    /// Time of the last change as shown to users: that of the write, not of the store that brought it.
    pub change_time: FileTime,
    /// Access list; only directories have one.
    pub acl: Option<Arc<Acl>>,
    pub(crate) content: ContentId,
    /// Bytes of a file that count against the quota: the sum over its slots.
    pub(crate) stored: u64,
    /// Pending cuts of a file.
    pub(crate) cuts: Cuts,
}

impl VnodeRecord {
    /// Its name in a volume.
    pub fn fid(&self, volume: VolumeId) -> Fid {
        Fid::new(volume, self.vnode, self.unique)
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Charge against the quota, in KiB. Holes of a file are not charged.
    pub fn blocks(&self) -> u64 {
        blocks(if self.kind == FileKind::File { self.stored } else { self.length })
    }

    /// Whether another record describes the same state. Background work changes pending cuts, and with them
    /// corrects the charge.
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        let state = |record: &Self| Self { stored: 0, cuts: Cuts::default(), ..record.clone() };
        state(self) == state(other)
    }

    /// Records the deletion of a cut-out row of `allocated` bytes, for which the file may no longer be
    /// charged.
    pub(crate) fn drop_hidden(&mut self, allocated: u64) {
        let before = allocated.min(self.cuts.relieved);
        self.cuts.relieved -= before;
        self.stored = self.stored.saturating_sub(allocated - before);
    }

    /// Limits the charge: at most `most` bytes can be part of the file.
    pub(crate) fn relieve(&mut self, most: u64) {
        let too_many = self.stored.saturating_sub(most);
        self.stored -= too_many;
        if !self.cuts.is_empty() {
            self.cuts.relieved += too_many;
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.put_u8(if self.cuts.is_empty() { VERSION } else { VERSION_WITH_CUTS });
        out.put_u8(self.kind as u8);
        out.put_u32(self.unique.0);
        out.put_u64(self.data_version.0);
        out.put_u64(self.length);
        for word in [self.author.0 as u32, self.owner.0 as u32, self.group, self.mode.0, self.link_count] {
            out.put_u32(word);
        }
        out.put_u32(self.parent.0);
        out.put_u32(self.parent_unique.0);
        out.put_u64(self.client_mod_time.as_nanos());
        out.put_u64(self.server_mod_time.as_nanos());
        out.put_u64(self.change_time.as_nanos());
        out.put_u64(self.content.0);
        out.put_u64(self.stored);
        if !self.cuts.is_empty() {
            self.cuts.encode(&mut out);
        }
        if let Some(acl) = &self.acl {
            for entries in [&acl.positive, &acl.negative] {
                out.put_u32(entries.len() as u32);
                for (id, rights) in entries {
                    out.put_u32(id.0 as u32);
                    out.put_u32(rights.0);
                }
            }
        }
        out
    }

    pub(crate) fn decode(vnode: VnodeId, record: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(record);
        let version = fields.u8()?;
        let of_seconds = match version {
            VERSION_WITHOUT_HOLES | SECONDS | SECONDS_WITH_CUTS => true,
            TWO_TIMES | TWO_TIMES_WITH_CUTS | VERSION | VERSION_WITH_CUTS => false,
            _ => return Err(BadRecord),
        };
        let kind = match fields.u8()? {
            1 => FileKind::File,
            2 => FileKind::Directory,
            3 => FileKind::Symlink,
            _ => return Err(BadRecord),
        };
        let mut record = Self {
            vnode,
            kind,
            unique: Uniquifier(fields.u32()?),
            data_version: DataVersion(fields.u64()?),
            length: fields.u64()?,
            author: ViceId(fields.u32()? as i32),
            owner: ViceId(fields.u32()? as i32),
            group: fields.u32()?,
            mode: Mode(fields.u32()?),
            link_count: fields.u32()?,
            parent: VnodeId(fields.u32()?),
            parent_unique: Uniquifier(fields.u32()?),
            client_mod_time: time(&mut fields, of_seconds)?,
            server_mod_time: time(&mut fields, of_seconds)?,
            change_time: FileTime::default(),
            content: ContentId(0),
            stored: 0,
            cuts: Cuts::default(),
            acl: None,
        };
        record.change_time = match version {
            VERSION | VERSION_WITH_CUTS => time(&mut fields, false)?,
            _ => record.server_mod_time,
        };
        record.content = ContentId(fields.u64()?);
        // A file of an older version is charged with its length until it is cut.
        record.stored = if version == VERSION_WITHOUT_HOLES { record.length } else { fields.u64()? };
        if [SECONDS_WITH_CUTS, TWO_TIMES_WITH_CUTS, VERSION_WITH_CUTS].contains(&version) {
            record.cuts = Cuts::decode(&mut fields)?;
        }
        if !fields.is_empty() {
            let (positive, negative) = (acl_entries(&mut fields)?, acl_entries(&mut fields)?);
            record.acl = Some(Arc::new(Acl { positive, negative }));
        }
        fields.finish()?;
        Ok(record)
    }
}

/// The charge of a length against the quota, in KiB (`docs/protocol/fileserver.md` "11. Quota and space").
pub fn blocks(length: u64) -> u64 {
    length.div_ceil(1024).max(1)
}

fn time(fields: &mut Fields, of_seconds: bool) -> Decoded<FileTime> {
    match of_seconds {
        true => Ok(UnixSeconds(fields.u32()?).into()),
        false => FileTime::from_nanos(fields.u64()?).ok_or(BadRecord),
    }
}

fn acl_entries(fields: &mut Fields) -> Decoded<Vec<(ViceId, Rights)>> {
    let count = fields.u32()? as usize;
    let mut bytes = Fields::new(fields.bytes(count.checked_mul(8).ok_or(BadRecord)?)?);
    (0..count).map(|_| Ok((ViceId(bytes.u32()? as i32), Rights(bytes.u32()?)))).collect()
}

const VERSION: u8 = 6;
const VERSION_WITH_CUTS: u8 = 7;
/// Versions of before, without the time of change that is shown.
const TWO_TIMES: u8 = 4;
const TWO_TIMES_WITH_CUTS: u8 = 5;
/// Versions of before, whose times are in seconds.
const VERSION_WITHOUT_HOLES: u8 = 1;
const SECONDS: u8 = 2;
const SECONDS_WITH_CUTS: u8 = 3;

#[cfg(test)]
pub(crate) fn example(vnode: VnodeId) -> VnodeRecord {
    VnodeRecord {
        vnode,
        unique: Uniquifier(9),
        kind: FileKind::Directory,
        data_version: DataVersion(1 << 40),
        length: 2048,
        author: ViceId(1),
        owner: ViceId(-2),
        group: 3,
        mode: Mode(0o755),
        link_count: 2,
        parent: VnodeId(1),
        parent_unique: Uniquifier(1),
        client_mod_time: FileTime::new(UnixSeconds(4), 30_000_000),
        server_mod_time: UnixSeconds(5).into(),
        change_time: FileTime::new(UnixSeconds(5), 1),
        acl: None,
        content: ContentId(6),
        stored: 0,
        cuts: Cuts::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_count_an_empty_file_as_one() {
        assert_eq!([0, 1, 1024, 1025, 2048].map(blocks), [1, 1, 1, 2, 2]);
    }

    #[test]
    fn records_of_older_versions_have_two_times() {
        let change_time = UnixSeconds(5).into();
        let record =
            VnodeRecord { client_mod_time: UnixSeconds(4).into(), change_time, ..example(VnodeId(5)) };
        let stored = record.encode();
        // Behind version, type, uniquifier, version, length and seven words.
        let (head, rest) = stored.split_at(50);
        let (times, tail) = rest.split_at(24);
        let five = 5_000_000_000u64.to_be_bytes();
        assert_eq!(times, [4_000_000_000u64.to_be_bytes(), five, five].concat());
        for (version, times) in
            [(SECONDS, &[4u32.to_be_bytes(), 5u32.to_be_bytes()].concat()[..]), (TWO_TIMES, &times[..16])]
        {
            let old = [&[version], &head[1..], times, tail].concat();
            assert_eq!(VnodeRecord::decode(VnodeId(5), old.into()).as_ref(), Ok(&record));
        }
    }

    #[test]
    fn a_record_reads_back_and_no_cut_of_it_does() {
        let acl = Acl {
            positive: vec![(ViceId::ADMINISTRATORS, Rights::ALL), (ViceId::ANYUSER, Rights::READ)],
            negative: vec![(ViceId(7), Rights::WRITE)],
        };
        let record = VnodeRecord { acl: Some(Arc::new(acl)), ..example(VnodeId(5)) };
        let stored = Bytes::from(record.encode());
        assert_eq!(VnodeRecord::decode(VnodeId(5), stored.clone()), Ok(record.clone()));
        let whole_without_acl = VnodeRecord { acl: None, ..record }.encode().len();
        for len in (0..stored.len()).filter(|len| *len != whole_without_acl) {
            assert_eq!(VnodeRecord::decode(VnodeId(5), stored.slice(..len)), Err(BadRecord), "{len}");
        }
    }
}
