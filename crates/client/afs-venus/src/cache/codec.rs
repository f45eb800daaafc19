//! Encoding of records in the files of a cache: names, numbers and ranges, big-endian, behind a length and a checksum.

use std::borrow::Cow;

use afs_wire::ids::{CellName, Fid, Uniquifier, VnodeId, VolumeId};

use crate::api::TokenOwner;
use crate::cache::Ranges;
use crate::cache::encryption::{RecordKind, Sealing};

/// A record: `length u32, crc32c u32` (of the body), and the body, sealed if the cache is encrypted.
pub(super) fn framed(sealing: &Sealing, kind: RecordKind, body: Vec<u8>) -> Vec<u8> {
    let body = sealing.seal(kind, body);
    let mut out = Vec::with_capacity(body.len() + 8);
    out.extend((body.len() as u32).to_be_bytes());
    out.extend(crc32c::crc32c(&body).to_be_bytes());
    out.extend(body);
    out
}

/// The body of a record that has these bytes; `None` if it is damaged or truncated, or something follows it.
pub(super) fn unframed<'a>(sealing: &Sealing, kind: RecordKind, bytes: &'a [u8]) -> Option<Cow<'a, [u8]>> {
    let mut rest = bytes;
    let (length, crc) = (word(&mut rest)?, word(&mut rest)?);
    let is_whole = rest.len() == length as usize && crc32c::crc32c(rest) == crc;
    if is_whole { sealing.open(kind, rest) } else { None }
}

/// At most `most` ranges, the first ones.
pub(super) fn put_ranges(body: &mut Vec<u8>, ranges: &Ranges, most: usize) {
    body.extend((ranges.count().min(most) as u32).to_be_bytes());
    for range in ranges.iter().take(most) {
        body.extend(range.start.to_be_bytes());
        body.extend(range.end.to_be_bytes());
    }
}

pub(super) fn put_name(body: &mut Vec<u8>, cell: &CellName, fid: Fid) {
    body.push(cell.as_str().len() as u8);
    body.extend(cell.as_str().as_bytes());
    put_fid(body, fid);
}

pub(super) fn put_fid(body: &mut Vec<u8>, fid: Fid) {
    for word in [fid.volume.0, fid.vnode.0, fid.unique.0] {
        body.extend(word.to_be_bytes());
    }
}

/// The cell of a name. `last` is the cell of the record before, and becomes that of this one.
pub(super) fn cell_of(name: &[u8], last: &mut Option<CellName>) -> Option<CellName> {
    if let Some(cell) = last.as_ref().filter(|cell| cell.as_str().as_bytes() == name) {
        return Some(cell.clone());
    }
    *last = Some(CellName::new(std::str::from_utf8(name).ok()?).ok()?);
    last.clone()
}

pub(super) fn fid_of(rest: &mut &[u8]) -> Option<Fid> {
    Some(Fid::new(VolumeId(word(rest)?), VnodeId(word(rest)?), Uniquifier(word(rest)?)))
}

/// Ranges, as many as there are bytes for.
pub(super) fn ranges(rest: &mut &[u8]) -> Option<Ranges> {
    let mut ranges = Ranges::new();
    for _ in 0..word(rest)? {
        let (start, end) = (long(rest)?, long(rest)?);
        ranges.insert(start..end);
    }
    Some(ranges)
}

pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (now, later) = rest.split_first_chunk::<N>()?;
    *rest = later;
    Some(*now)
}

pub(super) fn word(rest: &mut &[u8]) -> Option<u32> {
    take(rest).map(u32::from_be_bytes)
}

pub(super) fn long(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_be_bytes)
}

/// Bytes behind their number in one byte.
pub(super) fn text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let [length] = take::<1>(rest)?;
    let (now, later) = rest.split_at_checked(usize::from(length))?;
    *rest = later;
    Some(now)
}

/// `0u8 | 1u8, uid u32 | 2u8, uid u32, session u128`.
pub(super) fn put_owner(body: &mut Vec<u8>, owner: Option<TokenOwner>) {
    match owner {
        None => body.push(0),
        Some(TokenOwner::Uid(uid)) => {
            body.push(1);
            body.extend(uid.to_be_bytes());
        }
        Some(TokenOwner::Session { id, uid }) => {
            body.push(2);
            body.extend(uid.to_be_bytes());
            body.extend(id.to_be_bytes());
        }
    }
}

pub(super) fn owner(rest: &mut &[u8]) -> Option<Option<TokenOwner>> {
    Some(match take::<1>(rest)? {
        [0] => None,
        [1] => Some(TokenOwner::Uid(word(rest)?)),
        [2] => {
            let uid = word(rest)?;
            Some(TokenOwner::Session { id: take(rest).map(u128::from_be_bytes)?, uid })
        }
        _ => return None,
    })
}
