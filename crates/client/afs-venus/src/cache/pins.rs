//! List of pins on disk, which is replaced as a whole.
//!
//! ```text
//! list      length u32, crc32c u32 (of the rest; all numbers big-endian), 1u8, pins
//! pin       cell, fid 3*u32, owner, flags u8 (1 recursive, 2 offline), path
//! cell      length u8, bytes
//! owner     0u8 | 1u8, uid u32 | 2u8, uid u32, session u128
//! path      length u16, bytes
//! ```

use afs_wire::ids::{CellName, Fid};

use crate::api::TokenOwner;
use crate::cache::codec::{cell_of, fid_of, framed, owner, put_name, put_owner, take, text, unframed};
use crate::cache::encryption::{RecordKind, Sealing};

/// Pins of a mount.
pub(crate) const PINS_MAX: usize = 64;
/// Longest path of a pin, in bytes: the kernel's bound.
const PATH_MAX: usize = 4096;
/// Longest list, in bytes.
pub(super) const LIST_MAX: u64 = (PINS_MAX * (PATH_MAX + 512)) as u64;

/// Version of the format.
const FORMAT: u8 = 1;

/// What a user has pinned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinRecord {
    /// Its cell.
    pub cell: CellName,
    /// The file or directory.
    pub fid: Fid,
    /// The user who pinned it, with whose tokens it is fetched; `None`: it is not known.
    pub owner: Option<TokenOwner>,
    /// With all that is below it.
    pub is_recursive: bool,
    /// It may be read as it was last promised while its server is away.
    pub is_offline: bool,
    /// Path from the root of the mount, as it was named; at most 4096 bytes.
    pub path: Vec<u8>,
}

pub(super) fn encode(sealing: &Sealing, pins: &[PinRecord]) -> Vec<u8> {
    let mut body = vec![FORMAT];
    for PinRecord { cell, fid, owner, is_recursive, is_offline, path } in pins {
        put_name(&mut body, cell, *fid);
        put_owner(&mut body, *owner);
        body.push(u8::from(*is_recursive) | u8::from(*is_offline) << 1);
        body.extend((path.len() as u16).to_be_bytes());
        body.extend(path);
    }
    framed(sealing, RecordKind::Pins, body)
}

/// The list in these bytes; `None` if it is damaged, too long, or of another format.
pub(super) fn decode(sealing: &Sealing, bytes: &[u8]) -> Option<Vec<PinRecord>> {
    let body = unframed(sealing, RecordKind::Pins, bytes)?;
    let mut rest = &*body;
    if take::<1>(&mut rest)? != [FORMAT] {
        return None;
    }
    let mut pins = Vec::new();
    while !rest.is_empty() && pins.len() < PINS_MAX {
        pins.push(pin(&mut rest)?);
    }
    rest.is_empty().then_some(pins)
}

fn pin(rest: &mut &[u8]) -> Option<PinRecord> {
    let cell = cell_of(text(rest)?, &mut None)?;
    let (fid, owner) = (fid_of(rest)?, owner(rest)?);
    let [flags] = take::<1>(rest)?;
    if flags > 3 {
        return None;
    }
    let (is_recursive, is_offline) = (flags & 1 != 0, flags & 2 != 0);
    let length = usize::from(take(rest).map(u16::from_be_bytes)?);
    let (path, later) = rest.split_at_checked(length).filter(|(path, _)| path.len() <= PATH_MAX)?;
    *rest = later;
    Some(PinRecord { cell, fid, owner, is_recursive, is_offline, path: path.to_vec() })
}

/// Fuzz target: decodes arbitrary bytes, as they are and as the body of a list whose length and checksum are right.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_any(bytes: &[u8]) {
    let _ = decode(&Sealing::Plain, bytes);
    if let Some(pins) = decode(&Sealing::Plain, &framed(&Sealing::Plain, RecordKind::Pins, bytes.to_vec())) {
        assert_eq!(decode(&Sealing::Plain, &encode(&Sealing::Plain, &pins)).as_ref(), Some(&pins));
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    fn pins() -> Vec<PinRecord> {
        let one = PinRecord {
            cell: CellName::new("example.org").unwrap(),
            fid: Fid::new(VolumeId(7), VnodeId(1), Uniquifier(3)),
            owner: Some(TokenOwner::Session { id: 1 << 100, uid: 1001 }),
            is_recursive: true,
            is_offline: true,
            path: b"a/\xff".to_vec(),
        };
        let longest =
            PinRecord { owner: Some(TokenOwner::Uid(7)), path: vec![b'x'; PATH_MAX], ..one.clone() };
        vec![
            one.clone(),
            longest,
            PinRecord { owner: None, is_recursive: false, is_offline: false, path: Vec::new(), ..one },
        ]
    }

    #[test]
    fn a_list_is_read_as_it_was_written_or_not_at_all() {
        let whole = encode(&Sealing::Plain, &pins());
        assert_eq!(decode(&Sealing::Plain, &whole), Some(pins()));
        assert_eq!(decode(&Sealing::Plain, &encode(&Sealing::Plain, &[])), Some(Vec::new()));
        for end in 0..whole.len() {
            assert_eq!(decode(&Sealing::Plain, whole.get(..end).unwrap()), None, "{end}");
        }
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(decode(&Sealing::Plain, &damaged), None, "{at}");
        }
    }

    #[test]
    fn a_list_that_is_too_long_is_refused() {
        let many = vec![pins().remove(0); PINS_MAX + 1];
        assert_eq!(decode(&Sealing::Plain, &encode(&Sealing::Plain, &many)), None);
        assert!(decode(&Sealing::Plain, &encode(&Sealing::Plain, &many[1..])).is_some());
        let long = PinRecord { path: vec![b'x'; PATH_MAX + 1], ..pins().remove(0) };
        assert_eq!(decode(&Sealing::Plain, &encode(&Sealing::Plain, &[long])), None);
        let longest = PinRecord { path: vec![b'x'; PATH_MAX], ..pins().remove(0) };
        assert!(encode(&Sealing::Plain, &vec![longest; PINS_MAX]).len() as u64 <= LIST_MAX);
    }
}
