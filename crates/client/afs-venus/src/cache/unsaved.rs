//! Records of data that no server has, kept on disk beside the data until it is stored, discarded or dropped.
//!
//! ```text
//! record    length u32, crc32c u32 (of the rest; all numbers big-endian), 2u8, cell, fid 3*u32,
//!           owner, flags u8 (1 owner had a token, 2 set aside, 4 open for writing,
//!           8 without checksums, as programs may still write), replaces u64,
//!           version u64, base length u64, base time u64, length u64, cut u64, changed u64,
//!           error kind u8, error number i32, server, since u32,
//!           ranges present, ranges that are holes, ranges that no server has, crc32c of these u32, crc32c of the other data u32
//! cell      length u8, bytes
//! owner     0u8 | 1u8, uid u32 | 2u8, uid u32, session u128
//! server    length u8, text of address and port; empty if unknown
//! ranges    count u32, count * (start u64, end u64)
//! ```
//!
//! Base time and changed are in nanoseconds since 1970, in records that begin with 1u8 in seconds; 2^64-1 stands for none. Since is in
//! seconds.

use std::net::SocketAddr;

use afs_wire::ids::{CellName, DataVersion, Fid, FileTime, UnixSeconds};

use crate::api::TokenOwner;
use crate::cache::Ranges;
use crate::cache::codec::{
    cell_of, fid_of, framed, long, owner, put_name, put_owner, put_ranges, ranges, take, text, unframed, word,
};
use crate::cache::encryption::{RecordKind, Sealing};

/// Ranges of a kind in a record; data with more is not kept.
pub const RANGES_MAX: usize = 1 << 16;
/// Longest record, in bytes: three kinds of ranges, and what is of bounded length.
pub(super) const RECORD_MAX: u64 = 3 * 16 * (1 << 16) + 1024;

/// Version of the format.
const FORMAT: u8 = 2;
/// Its times are in seconds.
const FORMAT_OF_SECONDS: u8 = 1;
const HAD_TOKEN: u8 = 1;
const SET_ASIDE: u8 = 2;
const OPEN: u8 = 4;
const WITHOUT_SUMS: u8 = 8;

/// What is known of data that no server has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnsavedRecord {
    /// The cell of the file.
    pub cell: CellName,
    /// The file that the data was to be stored to.
    pub fid: Fid,
    /// Who wrote it; `None`: unknown.
    pub owner: Option<TokenOwner>,
    /// The owner had a token for the cell: the store must not be made without one.
    pub had_token: bool,
    /// No store is retried.
    pub is_set_aside: bool,
    /// A program had the file open for writing when the record was made: the data may be an incomplete change.
    pub is_open: bool,
    /// Number of the data of which this is a copy; 0 if it is none.
    pub replaces: u64,
    /// Version at the server that the data was made from.
    pub version: DataVersion,
    /// Length of that version, in bytes.
    pub base_length: u64,
    /// Modification time of that version, if it is known.
    pub base_time: Option<FileTime>,
    /// Length of the file as it was written, in bytes.
    pub length: u64,
    /// Length of the part of that version which is still part of the file.
    pub cut: u64,
    /// Time of the last change.
    pub changed_at: Option<FileTime>,
    /// Kind of the error of the last store, as its owner numbers it.
    pub error_kind: u8,
    /// Number of the error.
    pub error_number: i32,
    /// The server that gave or caused the error.
    pub server: Option<SocketAddr>,
    /// When the first store failed.
    pub since: UnixSeconds,
    /// Bytes that are cached.
    pub present: Ranges,
    /// Cached bytes that are zeros without space.
    pub holes: Ranges,
    /// Bytes that no server has.
    pub dirty: Ranges,
    /// False while programs may still write: the checksums are 0.
    pub has_sums: bool,
    /// Checksum of the bytes that no server has, outside of holes, in order.
    pub dirty_sum: u32,
    /// Checksum of the other cached bytes, outside of holes, in order.
    pub clean_sum: u32,
}

impl UnsavedRecord {
    /// The bytes of [`UnsavedRecord::dirty_sum`].
    pub fn dirty_data(&self) -> Ranges {
        without(&self.dirty, &[&self.holes])
    }

    /// The bytes of [`UnsavedRecord::clean_sum`].
    pub fn clean_data(&self) -> Ranges {
        without(&self.present, &[&self.holes, &self.dirty])
    }

    /// True if the ranges are few enough for a record.
    pub fn fits(&self) -> bool {
        [&self.present, &self.holes, &self.dirty].iter().all(|ranges| ranges.count() <= RANGES_MAX)
    }

    pub(super) fn encode(&self, sealing: &Sealing) -> Vec<u8> {
        let mut body = vec![FORMAT];
        put_name(&mut body, &self.cell, self.fid);
        put_owner(&mut body, self.owner);
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        body.push(
            flag(self.had_token, HAD_TOKEN)
                | flag(self.is_set_aside, SET_ASIDE)
                | flag(self.is_open, OPEN)
                | flag(!self.has_sums, WITHOUT_SUMS),
        );
        let (base_time, changed) = (time(self.base_time), time(self.changed_at));
        let numbers =
            [self.replaces, self.version.0, self.base_length, base_time, self.length, self.cut, changed];
        numbers.iter().for_each(|number| body.extend(number.to_be_bytes()));
        body.push(self.error_kind);
        body.extend(self.error_number.to_be_bytes());
        let server = self.server.map_or(String::new(), |server| server.to_string());
        body.push(server.len() as u8);
        body.extend(server.as_bytes());
        body.extend(self.since.0.to_be_bytes());
        for ranges in [&self.present, &self.holes, &self.dirty] {
            put_ranges(&mut body, ranges, RANGES_MAX);
        }
        body.extend(self.dirty_sum.to_be_bytes());
        body.extend(self.clean_sum.to_be_bytes());
        framed(sealing, RecordKind::Unsaved, body)
    }

    /// The record in these bytes; `None` if it is damaged, truncated, or of another format.
    pub(super) fn decode(sealing: &Sealing, bytes: &[u8]) -> Option<UnsavedRecord> {
        let body = unframed(sealing, RecordKind::Unsaved, bytes)?;
        let mut rest = &*body;
        let record = decode_body(&mut rest)?;
        (rest.is_empty() && record.fits() && record.is_sound()).then_some(record)
    }

    /// True if no range lies beyond the file, and what no server has is here.
    fn is_sound(&self) -> bool {
        let is_within = |ranges: &Ranges| ranges.end() <= self.length;
        is_within(&self.present)
            && self.length <= i64::MAX as u64
            && self.cut <= self.base_length
            && [&self.dirty, &self.holes]
                .iter()
                .all(|ranges| ranges.iter().all(|it| self.present.contains(&it)))
    }
}

fn decode_body(rest: &mut &[u8]) -> Option<UnsavedRecord> {
    let [format @ (FORMAT | FORMAT_OF_SECONDS)] = take::<1>(rest)? else { return None };
    let cell = cell_of(text(rest)?, &mut None)?;
    let fid = fid_of(rest)?;
    let owner = owner(rest)?;
    let [flags] = take::<1>(rest)?;
    let (replaces, version, base_length) = (long(rest)?, DataVersion(long(rest)?), long(rest)?);
    let (base_time, length, cut, changed) = (long(rest)?, long(rest)?, long(rest)?, long(rest)?);
    let ([error_kind], error_number) = (take::<1>(rest)?, take(rest).map(i32::from_be_bytes)?);
    let server = match std::str::from_utf8(text(rest)?).ok()? {
        "" => None,
        text => Some(text.parse().ok()?),
    };
    let since = UnixSeconds(word(rest)?);
    let (present, holes, dirty) = (ranges(rest)?, ranges(rest)?, ranges(rest)?);
    Some(UnsavedRecord {
        cell,
        fid,
        owner,
        had_token: flags & HAD_TOKEN != 0,
        is_set_aside: flags & SET_ASIDE != 0,
        is_open: flags & OPEN != 0,
        replaces,
        version,
        base_length,
        base_time: time_of(base_time, format)?,
        length,
        cut,
        changed_at: time_of(changed, format)?,
        error_kind,
        error_number,
        server,
        since,
        present,
        holes,
        dirty,
        has_sums: flags & WITHOUT_SUMS == 0,
        dirty_sum: word(rest)?,
        clean_sum: word(rest)?,
    })
}

fn time(at: Option<FileTime>) -> u64 {
    at.map_or(u64::MAX, FileTime::as_nanos)
}

fn time_of(number: u64, format: u8) -> Option<Option<FileTime>> {
    match number {
        u64::MAX => Some(None),
        seconds if format == FORMAT_OF_SECONDS => {
            Some(Some(UnixSeconds(u32::try_from(seconds).ok()?).into()))
        }
        nanos => FileTime::from_nanos(nanos).map(Some),
    }
}

fn without(ranges: &Ranges, others: &[&Ranges]) -> Ranges {
    let mut rest = ranges.clone();
    for other in others {
        other.iter().for_each(|range| rest.remove(range));
    }
    rest
}

/// Fuzz target: decodes arbitrary bytes, as they are and as the body of a record whose length and checksum are right.
#[cfg(feature = "fuzzing")]
pub(crate) fn read_any(bytes: &[u8]) {
    let _ = UnsavedRecord::decode(&Sealing::Plain, bytes);
    if let Some(record) =
        UnsavedRecord::decode(&Sealing::Plain, &framed(&Sealing::Plain, RecordKind::Unsaved, bytes.to_vec()))
    {
        assert_eq!(
            UnsavedRecord::decode(&Sealing::Plain, &record.encode(&Sealing::Plain)).as_ref(),
            Some(&record)
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    pub fn record() -> UnsavedRecord {
        let mut dirty = Ranges::new();
        dirty.insert(2..4);
        dirty.insert(7..9);
        let mut holes = Ranges::new();
        holes.insert(5..6);
        UnsavedRecord {
            cell: CellName::new("example.org").unwrap(),
            fid: Fid::new(VolumeId(7), VnodeId(2), Uniquifier(3)),
            owner: Some(TokenOwner::Session { id: 1 << 100, uid: 1001 }),
            had_token: true,
            is_set_aside: false,
            is_open: true,
            replaces: 9,
            version: DataVersion(12),
            base_length: 6,
            base_time: Some(FileTime::new(UnixSeconds(5), 6)),
            length: 9,
            cut: 4,
            changed_at: None,
            error_kind: 3,
            error_number: -7,
            server: Some(SocketAddr::from(([10, 0, 0, 1], 7000))),
            since: UnixSeconds(8),
            present: Ranges::whole(9),
            holes,
            dirty,
            has_sums: true,
            dirty_sum: 1,
            clean_sum: 2,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_or_not_at_all() {
        let whole = record().encode(&Sealing::Plain);
        assert_eq!(UnsavedRecord::decode(&Sealing::Plain, &whole), Some(record()));
        let user = UnsavedRecord { owner: Some(TokenOwner::Uid(7)), server: None, ..record() };
        assert_eq!(UnsavedRecord::decode(&Sealing::Plain, &user.encode(&Sealing::Plain)), Some(user));
        for end in 0..whole.len() {
            assert_eq!(UnsavedRecord::decode(&Sealing::Plain, whole.get(..end).unwrap()), None, "{end}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert_eq!(UnsavedRecord::decode(&Sealing::Plain, &damaged), None, "{at}");
        }
    }

    #[test]
    fn ranges_that_no_file_can_have_are_refused() {
        let beyond = UnsavedRecord { length: 8, ..record() };
        let absent = UnsavedRecord { present: Ranges::whole(8), ..record() };
        for wrong in [beyond, absent, UnsavedRecord { cut: 7, ..record() }] {
            assert_eq!(
                UnsavedRecord::decode(&Sealing::Plain, &wrong.encode(&Sealing::Plain)),
                None,
                "{wrong:?}"
            );
        }
    }
}
