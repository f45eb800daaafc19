//! Text of a mount point. Source: `docs/protocol/directory.md` "5. Symbolic links and mount points",
//! `docs/protocol/volumes.md` "5. Mount points and volume choice".

use crate::ids::{CellName, NameError, Uniquifier, VnodeId, VolumeId, VolumeKind, VolumeName};
use crate::volname;
use std::fmt;

/// Permission bits that make a link a mount point to every client. Others without x bits work with OpenAFS only.
pub const MODE: crate::ids::Mode = crate::ids::Mode(0o644);

/// Longest text that is read, in bytes; more cannot be valid.
pub const TEXT_MAX: usize = 192;

/// Rule by which a mount point chooses among the volumes of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MountKind {
    /// `#`: a read-only volume if the path is read-only already, else the read-write volume.
    Regular,
    /// `%`: exactly the named volume.
    ReadWrite,
}

/// The mounted object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MountTarget {
    /// A volume by name, which may have a suffix.
    Name(VolumeName),
    /// A volume by number.
    Id(VolumeId),
    /// An object in a volume.
    Object(VolumeId, VnodeId, Uniquifier),
}

/// A mount point: `#` or `%`, perhaps `cell:`, the volume, and a full stop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MountPoint {
    /// Rule for the choice of the volume.
    pub kind: MountKind,
    /// The volume's cell; without one, the cell that the mount point is in.
    pub cell: Option<CellName>,
    /// The volume.
    pub target: MountTarget,
}

/// Why a text is not a mount point.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadMountPoint {
    /// It does not begin with `#` or `%`, or does not end with a full stop, or is far too long.
    #[error("a mount point is a # or %, perhaps a cell and a colon, a volume, and a full stop")]
    Shape,
    /// Its cell or volume name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// One of its numbers is too large or no number.
    #[error("{0:?} is no valid number in a mount point")]
    Number(String),
}

/// Result of the rule: which volume of a group to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The volume of this kind and no other.
    Exactly(VolumeKind),
    /// The read-only volume if there is one, else the read-write volume.
    ReadOnlyIfAny,
    /// The volume with that number.
    AsNumbered,
}

/// Whether a link with this text is a mount point, by the rule with which clients choose its mode.
pub fn is_meant(text: &[u8]) -> bool {
    text.len() > 1 && matches!(text.first(), Some(b'#' | b'%')) && text.last() == Some(&b'.')
}

impl MountPoint {
    /// Parses the text.
    ///
    /// # Errors
    /// [`BadMountPoint`].
    pub fn parse(text: &[u8]) -> Result<Self, BadMountPoint> {
        let text = std::str::from_utf8(text).map_err(|_| BadMountPoint::Shape)?;
        let body = text.strip_suffix('.').filter(|_| text.len() <= TEXT_MAX).ok_or(BadMountPoint::Shape)?;
        let (kind, body) = match (body.strip_prefix('#'), body.strip_prefix('%')) {
            (Some(body), _) => (MountKind::Regular, body),
            (_, Some(body)) => (MountKind::ReadWrite, body),
            _ => return Err(BadMountPoint::Shape),
        };
        let parts: Vec<&str> = body.split(':').collect();
        let (cell, target) = match parts.as_slice() {
            [volume] => (None, MountTarget::parse(volume)?),
            [cell, volume] => (Some(*cell), MountTarget::parse(volume)?),
            [volume, vnode, unique] => (None, MountTarget::object(volume, vnode, unique)?),
            [cell, volume, vnode, unique] => (Some(*cell), MountTarget::object(volume, vnode, unique)?),
            _ => return Err(BadMountPoint::Shape),
        };
        Ok(Self { kind, cell: cell.map(CellName::new).transpose()?, target })
    }

    /// The volume of the named group that a path enters here.
    ///
    /// `container` is the kind of the volume that holds the mount point; `same_cell` tells whether the volume is in
    /// the same cell as that one.
    pub fn choice(&self, container: VolumeKind, same_cell: bool) -> Choice {
        let suffix = match &self.target {
            MountTarget::Name(name) => volname::split(name.as_str()).1,
            MountTarget::Id(_) | MountTarget::Object(..) => None,
        };
        match (&self.target, self.kind, suffix) {
            (_, _, Some(kind)) => Choice::Exactly(kind),
            (MountTarget::Name(_), MountKind::ReadWrite, _) => Choice::Exactly(VolumeKind::ReadWrite),
            (MountTarget::Name(_), _, _) if !same_cell || container == VolumeKind::ReadOnly => {
                Choice::ReadOnlyIfAny
            }
            (MountTarget::Name(_), _, _) => Choice::Exactly(VolumeKind::ReadWrite),
            _ => Choice::AsNumbered,
        }
    }
}

impl MountTarget {
    fn parse(text: &str) -> Result<Self, BadMountPoint> {
        if text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(|c| c.is_ascii_digit()) {
            return number(text).map(VolumeId).map(Self::Id);
        }
        Ok(Self::Name(VolumeName::new(text)?))
    }

    fn object(volume: &str, vnode: &str, unique: &str) -> Result<Self, BadMountPoint> {
        Ok(Self::Object(VolumeId(number(volume)?), VnodeId(number(vnode)?), Uniquifier(number(unique)?)))
    }
}

fn number(text: &str) -> Result<u32, BadMountPoint> {
    let digits = text.bytes().all(|c| c.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| BadMountPoint::Number(text.into()))
}

impl fmt::Display for MountTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name}"),
            Self::Id(id) => write!(f, "{id}"),
            Self::Object(volume, vnode, unique) => write!(f, "{volume}:{vnode}:{unique}"),
        }
    }
}

impl fmt::Display for MountPoint {
    /// The stored text, full stop included.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            MountKind::Regular => "#",
            MountKind::ReadWrite => "%",
        })?;
        if let Some(cell) = &self.cell {
            write!(f, "{cell}:")?;
        }
        write!(f, "{}.", self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back_as_written() {
        for text in [
            "#root.cell.",
            "%example.org:root.cell.",
            "#user.alice.readonly.",
            "#536870912.",
            "#example.org:536870912:1:1.",
            "%536870912:3:17.",
        ] {
            assert_eq!(MountPoint::parse(text.as_bytes()).unwrap().to_string(), text);
            assert!(is_meant(text.as_bytes()));
        }
    }

    #[test]
    fn texts_that_are_no_mount_point() {
        for text in [
            &b""[..],
            b".",
            b"#.",
            b"#",
            b"root.cell.",
            b"#root.cell",
            b"#:a.",
            b"#a:.",
            b"#a:b:c.",
            b"#1:2:3:4:5.",
            b"#99999999999.",
            b"#a b.",
            b"#\xff.",
            b"#a/b.",
            b"#+1:2:3.",
            b"#1:2:3:4.5.",
        ] {
            assert!(MountPoint::parse(text).is_err(), "{}", text.escape_ascii());
        }
        assert!(MountPoint::parse(format!("#{}.", "v".repeat(500)).as_bytes()).is_err());
    }

    #[test]
    fn which_volume_is_entered() {
        use VolumeKind::{Backup, ReadOnly, ReadWrite};
        let choice = |text: &[u8], container, same| MountPoint::parse(text).unwrap().choice(container, same);
        assert_eq!(choice(b"%v.", ReadOnly, false), Choice::Exactly(ReadWrite));
        assert_eq!(choice(b"%v.readonly.", ReadWrite, true), Choice::Exactly(ReadOnly));
        assert_eq!(choice(b"#v.backup.", ReadWrite, true), Choice::Exactly(Backup));
        assert_eq!(choice(b"#v.", ReadOnly, true), Choice::ReadOnlyIfAny);
        assert_eq!(choice(b"#v.", ReadWrite, true), Choice::Exactly(ReadWrite));
        assert_eq!(choice(b"#v.", Backup, true), Choice::Exactly(ReadWrite));
        assert_eq!(choice(b"#v.", ReadWrite, false), Choice::ReadOnlyIfAny);
        assert_eq!(choice(b"#7.", ReadOnly, true), Choice::AsNumbered);
    }
}
