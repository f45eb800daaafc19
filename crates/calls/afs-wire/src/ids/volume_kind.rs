//! The three kinds of volume in a group.

use std::fmt;

/// Kind of a volume: the original, a released copy, or last night's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum VolumeKind {
    /// Writable.
    ReadWrite = 0,
    /// A released copy; there may be many, with one volume number.
    ReadOnly = 1,
    /// A snapshot beside the read-write volume.
    Backup = 2,
}

impl VolumeKind {
    /// All kinds, in order of their numbers.
    pub const ALL: [Self; 3] = [Self::ReadWrite, Self::ReadOnly, Self::Backup];

    /// Index of this kind's number among a group's three.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What is of this kind among a group's three: of the read-write, the read-only and the backup volume.
    pub fn of<T>(self, [read_write, read_only, backup]: [T; 3]) -> T {
        match self {
            Self::ReadWrite => read_write,
            Self::ReadOnly => read_only,
            Self::Backup => backup,
        }
    }

    /// Suffix of the names of volumes of this kind.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::ReadWrite => "",
            Self::ReadOnly => ".readonly",
            Self::Backup => ".backup",
        }
    }
}

impl fmt::Display for VolumeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ReadWrite => "RW",
            Self::ReadOnly => "RO",
            Self::Backup => "BK",
        })
    }
}

id! {
    /// A kind of volume from a peer, not yet checked: services answer an invalid one with a code of their own.
    pub struct KindNumber(i32);
}

impl KindNumber {
    /// In look-ups: any kind (`docs/protocol/vldb.md` "1. Endpoint and conventions").
    pub const ANY: Self = Self(-1);

    /// The kind, if the number is valid.
    pub fn check(self) -> Option<VolumeKind> {
        usize::try_from(self.0).ok().and_then(|index| VolumeKind::ALL.get(index)).copied()
    }
}

impl From<VolumeKind> for KindNumber {
    fn from(kind: VolumeKind) -> Self {
        Self(kind as i32)
    }
}
