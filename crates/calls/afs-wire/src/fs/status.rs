//! An object's status.

use crate::error::AbortCode;
use crate::ids::{DataVersion, FileTime, Mode, Rights, Uniquifier, UnixSeconds, ViceId, VnodeId};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

/// Type of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum FileKind {
    /// Nothing; only in statuses that carry an error.
    #[default]
    Invalid = 0,
    /// A file.
    File = 1,
    /// A directory.
    Directory = 2,
    /// A symbolic link or a mount point.
    Symlink = 3,
}

impl Encode for FileKind {
    fn encode(&self, out: &mut Vec<u8>) {
        (*self as u32).encode(out);
    }
}

impl Decode for FileKind {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u32()? {
            0 => Ok(Self::Invalid),
            1 => Ok(Self::File),
            2 => Ok(Self::Directory),
            3 => Ok(Self::Symlink),
            value => Err(DecodeError::BadValue { what: "file type", value }),
        }
    }
}

/// An object's status: `AFSFetchStatus`, 84 bytes.
///
/// The interface version is not a field: it is written as the protocol requires and checked when read. Length and data version are
/// joined from their two halves, and the times from their seconds and a word that AFS-3 does not use. Source:
/// `docs/protocol/fileserver.md` "2. Structures", `docs/protocol/extensions.md` "Times".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Type of the object.
    pub kind: FileKind,
    /// Names of a file in its directory; 2 + subdirectories of a directory.
    pub link_count: u32,
    /// Bytes of data.
    pub length: u64,
    /// Counter of changes to the data.
    pub data_version: DataVersion,
    /// The user who changed the data last.
    pub author: ViceId,
    /// The object's owner.
    pub owner: ViceId,
    /// Rights of the caller.
    pub caller_access: Rights,
    /// Rights of anonymous callers.
    pub anonymous_access: Rights,
    /// Permission bits, no type bits.
    pub mode: Mode,
    /// The directory a file or link is in; **for a directory its own vnode**.
    pub parent: VnodeId,
    /// Uniquifier that goes with `parent`.
    pub parent_unique: Uniquifier,
    /// Modification time as shown to users.
    pub client_mod_time: FileTime,
    /// Last change by the server's clock.
    pub server_mod_time: FileTime,
    /// Unix group number, uninterpreted.
    pub group: u32,
    /// 0 not locked, n locked by n readers, -1 locked by a writer.
    pub lock_count: i32,
    /// Zero, or (only in [`InlineBulkStatus`](super::InlineBulkStatus)) why there is no status; the other fields are
    /// then zero.
    pub error: AbortCode,
}

impl Status {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 84;

    /// The entry of a bulk reply that carries an error.
    pub fn failed(error: AbortCode) -> Self {
        Self { error, ..Self::default() }
    }

    /// The status, unless it carries an error.
    ///
    /// # Errors
    /// The code in [`Status::error`].
    pub fn checked(self) -> Result<Self, AbortCode> {
        if self.error == AbortCode::OK { Ok(self) } else { Err(self.error) }
    }

    fn residency(&self) -> u32 {
        match (self.error == AbortCode::OK, self.server_mod_time.nanos()) {
            (false, _) => 0,
            (true, 0) => RESIDENT,
            (true, nanos) => nanos << 2 | HAS_NANOS | RESIDENT,
        }
    }

    fn words(&self) -> [u32; 21] {
        [
            INTERFACE_VERSION,
            self.kind as u32,
            self.link_count,
            self.length as u32,
            self.data_version.0 as u32,
            self.author.0 as u32,
            self.owner.0 as u32,
            self.caller_access.0,
            self.anonymous_access.0,
            self.mode.0,
            self.parent.0,
            self.parent_unique.0,
            self.residency(),
            self.client_mod_time.seconds().0,
            self.server_mod_time.seconds().0,
            self.group,
            nanos_word(self.client_mod_time),
            (self.data_version.0 >> 32) as u32,
            self.lock_count as u32,
            (self.length >> 32) as u32,
            self.error.0 as u32,
        ]
    }
}

const INTERFACE_VERSION: u32 = 1;
/// Of the residency mask: the bit that every object has, and the one that says that nanoseconds follow, from bit 2 on.
const RESIDENT: u32 = 1;
const HAS_NANOS: u32 = 2;

impl Encode for Status {
    fn encode(&self, out: &mut Vec<u8>) {
        // One copy of the whole record: statuses are the most frequent replies of a file server.
        let mut bytes = [0; Self::WIRE_LEN];
        for (to, word) in bytes.chunks_exact_mut(4).zip(self.words()) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&bytes);
    }
}

impl Decode for Status {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = r.u32()?;
        let kind = FileKind::decode(r)?;
        let [link_count, length, data_version] = <[u32; 3]>::decode(r)?;
        let [author, owner] = <[ViceId; 2]>::decode(r)?;
        let [caller_access, anonymous_access] = <[Rights; 2]>::decode(r)?;
        let (mode, parent, parent_unique) = (Mode(r.u32()?), VnodeId(r.u32()?), Uniquifier(r.u32()?));
        let residency = r.u32()?;
        let [client_mod_time, server_mod_time] = <[UnixSeconds; 2]>::decode(r)?;
        let [group, client_nanos, data_version_high] = <[u32; 3]>::decode(r)?;
        let (lock_count, length_high, error) = (r.i32()?, r.u32()?, AbortCode(r.i32()?));
        // Beside an error nothing else counts.
        let has_nanos = error == AbortCode::OK && residency & HAS_NANOS != 0;
        let server_nanos = if has_nanos { residency >> 2 } else { 0 };
        // Old servers leave the version zero beside an error (`docs/protocol/fileserver.md` "15. Traps", T5).
        if version != INTERFACE_VERSION && !(version == 0 && error != AbortCode::OK) {
            return Err(DecodeError::BadValue { what: "status interface version", value: version });
        }
        Ok(Self {
            kind,
            link_count,
            length: join(length_high, length),
            data_version: DataVersion(join(data_version_high, data_version)),
            author,
            owner,
            caller_access,
            anonymous_access,
            mode,
            parent,
            parent_unique,
            client_mod_time: FileTime::new(client_mod_time, nanos_of(client_nanos)),
            server_mod_time: FileTime::new(server_mod_time, server_nanos),
            group,
            lock_count,
            error,
        })
    }
}

/// The nanoseconds of a time, in a word that AFS-3 sends as 0.
pub(super) fn nanos_word(time: FileTime) -> u32 {
    if time.nanos() == 0 { 0 } else { time.nanos() | NANOS }
}

/// The nanoseconds in such a word: none, if it has something else.
pub(super) fn nanos_of(word: u32) -> u32 {
    if word & NANOS != 0 { word & !NANOS } else { 0 }
}

const NANOS: u32 = 1 << 31;

fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_one_words_in_the_documented_places() {
        let status = Status {
            kind: FileKind::Directory,
            link_count: 2,
            length: 0x0000_0007_0000_0800,
            data_version: DataVersion(0x0000_0009_0000_0003),
            author: ViceId(1),
            owner: ViceId::ADMINISTRATORS,
            caller_access: Rights::ALL,
            anonymous_access: Rights(9),
            mode: Mode(0o755),
            parent: VnodeId(1),
            parent_unique: Uniquifier(1),
            client_mod_time: UnixSeconds(100).into(),
            server_mod_time: UnixSeconds(101).into(),
            group: 5,
            lock_count: -1,
            error: AbortCode::OK,
        };
        let wire = status.to_bytes();
        assert_eq!(wire.len(), 84);
        let words: Vec<u32> = wire.chunks(4).map(|w| u32::from_be_bytes(w.try_into().unwrap())).collect();
        let owner = -204i32 as u32;
        let wanted =
            [1, 2, 2, 0x800, 3, 1, owner, 0x7f, 9, 0o755, 1, 1, 1, 100, 101, 5, 0, 9, 0xffff_ffff, 7, 0];
        assert_eq!(words, wanted);
        assert_eq!(Status::from_bytes(&wire), Ok(status));
    }

    #[test]
    fn nanoseconds_travel_in_words_that_others_do_not_use() {
        let [client_mod_time, server_mod_time] =
            [(100, 1), (101, 999_999_999)].map(|(seconds, nanos)| FileTime::new(UnixSeconds(seconds), nanos));
        let status = Status { client_mod_time, server_mod_time, ..Status::default() };
        let wire = status.to_bytes();
        let word = |at: usize| u32::from_be_bytes(wire[at * 4..at * 4 + 4].try_into().unwrap());
        assert_eq!([word(13), word(14), word(16)], [100, 101, 0x8000_0001]);
        assert_eq!(word(12), 999_999_999 << 2 | 3);
        assert_eq!(Status::from_bytes(&wire), Ok(status));
        let mut failed = wire.clone();
        failed[80..84].copy_from_slice(&AbortCode::VNOVNODE.0.to_be_bytes());
        let failed = Status::from_bytes(&failed).unwrap();
        assert_eq!(failed.error, AbortCode::VNOVNODE);
        assert_eq!(failed.server_mod_time, UnixSeconds(101).into(), "found by a fuzz target");
        assert_eq!(Status::from_bytes(&failed.to_bytes()), Ok(failed));
        let mut other = wire;
        other[64..68].copy_from_slice(&7u32.to_be_bytes());
        other[48..52].copy_from_slice(&1u32.to_be_bytes());
        let other = Status::from_bytes(&other).unwrap();
        assert_eq!(other.client_mod_time, UnixSeconds(100).into());
        assert_eq!(other.server_mod_time, UnixSeconds(101).into());
    }

    #[test]
    fn a_failed_entry_has_version_one_and_an_error() {
        let failed = Status::failed(AbortCode::VNOVNODE);
        let mut wire = failed.to_bytes();
        assert_eq!(wire[..4], [0, 0, 0, 1]);
        assert!(wire[4..80].iter().all(|&byte| byte == 0));
        wire[3] = 0;
        assert_eq!(Status::from_bytes(&wire), Ok(failed));
        assert_eq!(failed.checked(), Err(AbortCode::VNOVNODE));
    }

    #[test]
    fn other_versions_are_refused() {
        let mut wire = Status::default().to_bytes();
        wire[3] = 2;
        assert!(matches!(Status::from_bytes(&wire), Err(DecodeError::BadValue { value: 2, .. })));
        wire[3] = 0;
        assert!(Status::from_bytes(&wire).is_err());
    }
}
