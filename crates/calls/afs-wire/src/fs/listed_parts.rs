//! Compact form of the parts of a file: each is encoded as its differences from the part before it.
//!
//! Chunks that were written one after the other have equal lengths, and ids at equal distances, so that such a part is five bytes: a head, and
//! the checksum.

use super::{LAYOUT_COPIES_MAX, LAYOUT_DRIVES_MAX, LISTED_PARTS_MAX};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

/// Most bytes of the parts of one list: more than [`LISTED_PARTS_MAX`] parts can take.
pub const LISTED_BYTES_MAX: usize = 96 << 10;

/// A part of a file, and the chunk in which it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListedPart {
    /// Its first byte in the file.
    pub start: u64,
    /// Its bytes.
    pub length: u32,
    /// The chunk; all zeros without copies.
    pub chunk: ListedChunk,
    /// Where that is; none for bytes that only the file server gives.
    pub copies: Vec<ListedCopy>,
}

/// What all copies of a chunk have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListedChunk {
    /// Its bytes.
    pub length: u32,
    /// CRC-32C of them.
    pub crc: u32,
    /// Where the part begins in it.
    pub offset: u32,
}

/// A drive that has the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedCopy {
    /// A place in the list of drives.
    pub drive: u32,
    /// The chunk's id there, as a number.
    pub id: u128,
}

/// Parts of a file in order and without overlap, at most [`LISTED_PARTS_MAX`], each with at most [`LAYOUT_COPIES_MAX`] copies.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListedParts(Vec<ListedPart>);

/// A gap lies before the part: its length follows. Otherwise the part begins where the one before ends.
const GAP: u8 = 1;
/// The length follows. Otherwise it is that of the part before.
const LENGTH: u8 = 2;
/// The number of copies follows, and the drive of each. Otherwise they are at the drives of those of the part before.
const PLACES: u8 = 4;
/// Length of the chunk and offset in it follow. Otherwise the part is the whole chunk.
const INSIDE: u8 = 8;
/// The step to the id of each copy follows. Otherwise it is the step before at that drive.
const STEPS: u8 = 16;

/// What a part is compared with.
#[derive(Default)]
struct Before {
    end: u64,
    length: u32,
    drives: Vec<u32>,
    /// The last id at each drive, and the step that led to it.
    ids: [(u128, u128); LAYOUT_DRIVES_MAX],
}

impl ListedParts {
    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[ListedPart] {
        &self.0
    }

    /// A list of these parts; `None` if they are too many, overlap or are out of order, or one has too many copies, a drive that no reply
    /// has, or a chunk without a copy.
    #[must_use]
    pub fn new(parts: Vec<ListedPart>) -> Option<Self> {
        let mut end = 0;
        for part in &parts {
            if part.start < end || !part.is_within_bounds() {
                return None;
            }
            end = part.end()?;
        }
        (parts.len() <= LISTED_PARTS_MAX).then_some(Self(parts))
    }
}

impl ListedPart {
    fn end(&self) -> Option<u64> {
        self.start.checked_add(self.length.into())
    }

    fn is_within_bounds(&self) -> bool {
        let has_place = |copy: &ListedCopy| (copy.drive as usize) < LAYOUT_DRIVES_MAX;
        let is_bare = self.copies.is_empty() && self.chunk != ListedChunk::default();
        self.copies.len() <= LAYOUT_COPIES_MAX && self.copies.iter().all(has_place) && !is_bare
    }

    fn is_whole_chunk(&self) -> bool {
        (self.chunk.offset, self.chunk.length) == (0, self.length)
    }
}

impl Before {
    /// What is in the list before a copy at a drive: its id, and its step.
    fn at(&mut self, drive: u32) -> Option<&mut (u128, u128)> {
        self.ids.get_mut(drive as usize)
    }

    fn put(&mut self, part: &ListedPart, out: &mut Vec<u8>) {
        let gap = part.start.saturating_sub(self.end);
        let drives: Vec<u32> = part.copies.iter().map(|copy| copy.drive).collect();
        let (steps, are_equal) = self.steps(&part.copies);
        let head = out.len();
        out.push(0);
        let mut tell = |flag, is_told: bool, values: &mut dyn Iterator<Item = u128>| {
            if is_told && let Some(head) = out.get_mut(head) {
                *head |= flag;
                values.for_each(|value| put_number(value, out));
            }
        };
        tell(GAP, gap != 0, &mut [gap.into()].into_iter());
        tell(LENGTH, part.length != self.length, &mut [part.length.into()].into_iter());
        let count = [drives.len() as u128].into_iter();
        tell(PLACES, drives != self.drives, &mut count.chain(drives.iter().map(|drive| (*drive).into())));
        if !drives.is_empty() {
            let inside = [part.chunk.length, part.chunk.offset];
            tell(INSIDE, !part.is_whole_chunk(), &mut inside.into_iter().map(u128::from));
            tell(STEPS, !are_equal, &mut steps.into_iter().map(folded));
            out.extend_from_slice(&part.chunk.crc.to_be_bytes());
        }
        (self.end, self.length, self.drives) = (part.end().unwrap_or(u64::MAX), part.length, drives);
    }

    /// The steps to the ids of copies, which are the last ones from then on; and whether they are those of before.
    fn steps(&mut self, copies: &[ListedCopy]) -> (Vec<u128>, bool) {
        let (mut steps, mut are_equal) = (Vec::with_capacity(copies.len()), true);
        for copy in copies {
            let Some(before) = self.at(copy.drive) else { continue };
            let step = copy.id.wrapping_sub(before.0);
            are_equal &= step == before.1;
            *before = (copy.id, step);
            steps.push(step);
        }
        (steps, are_equal)
    }

    fn take(&mut self, r: &mut Reader<'_>) -> Result<ListedPart, DecodeError> {
        let [head] = *r.array()?;
        if head & !(GAP | LENGTH | PLACES | INSIDE | STEPS) != 0 {
            return Err(wrong(head));
        }
        let has = |flag| head & flag != 0;
        let gap = if has(GAP) { take_number(r)? } else { 0 };
        let start = self.end.checked_add(gap).ok_or_else(|| wrong(head))?;
        let length = if has(LENGTH) { take_number(r)? } else { self.length };
        if has(PLACES) {
            self.drives = take_places(r)?;
        }
        let mut part = ListedPart { start, length, ..ListedPart::default() };
        match self.drives.is_empty() {
            true if has(INSIDE | STEPS) => return Err(wrong(head)),
            true => {}
            false => self.take_chunk(r, &mut part, (has(INSIDE), has(STEPS)))?,
        }
        self.end = part.end().ok_or_else(|| wrong(head))?;
        self.length = length;
        Ok(part)
    }

    fn take_chunk(
        &mut self,
        r: &mut Reader<'_>,
        part: &mut ListedPart,
        (is_inside, has_steps): (bool, bool),
    ) -> Result<(), DecodeError> {
        (part.chunk.length, part.chunk.offset) =
            if is_inside { (take_number(r)?, take_number(r)?) } else { (part.length, 0) };
        let drives = self.drives.clone();
        for drive in drives {
            let before = self.at(drive).ok_or(BAD_DRIVE)?;
            let step = if has_steps { unfolded(take_number(r)?) } else { before.1 };
            *before = (before.0.wrapping_add(step), step);
            part.copies.push(ListedCopy { drive, id: before.0 });
        }
        part.chunk.crc = u32::from_be_bytes(*r.array()?);
        Ok(())
    }
}

const BAD_DRIVE: DecodeError = DecodeError::BadValue { what: "place of a drive", value: u32::MAX };

fn wrong(head: u8) -> DecodeError {
    DecodeError::BadValue { what: "head of a part", value: head.into() }
}

fn take_places(r: &mut Reader<'_>) -> Result<Vec<u32>, DecodeError> {
    let count: u32 = take_number(r)?;
    if count as usize > LAYOUT_COPIES_MAX {
        return Err(DecodeError::TooLong { limit: LAYOUT_COPIES_MAX, got: count as usize });
    }
    let drives = (0..count).map(|_| match take_number::<u32>(r)? {
        drive if (drive as usize) < LAYOUT_DRIVES_MAX => Ok(drive),
        value => Err(DecodeError::BadValue { what: "place of a drive", value }),
    });
    drives.collect()
}

/// A step forward or back as a number that is small for both.
fn folded(step: u128) -> u128 {
    let step = step as i128;
    ((step << 1) ^ (step >> 127)) as u128
}

fn unfolded(number: u128) -> u128 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// A number as LEB128: seven bits in each byte, the low ones first; the last one is below 128.
fn put_number(mut number: u128, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number<T: TryFrom<u128>>(r: &mut Reader<'_>) -> Result<T, DecodeError> {
    let mut number = 0u128;
    for shift in (0..u128::BITS).step_by(7) {
        let [byte] = *r.array()?;
        let bits = u128::from(byte & 0x7f);
        number |= bits << shift;
        if (bits << shift) >> shift != bits {
            break;
        }
        if byte < 0x80 {
            return T::try_from(number).map_err(|_| TOO_LARGE);
        }
    }
    Err(TOO_LARGE)
}

const TOO_LARGE: DecodeError = DecodeError::BadValue { what: "number in a list of parts", value: u32::MAX };

/// `opaque<>`: the number of parts, and each of them.
impl Encode for ListedParts {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        put_number(self.0.len() as u128, &mut bytes);
        let mut before = Before::default();
        self.0.iter().for_each(|part| before.put(part, &mut bytes));
        (bytes.len() as u32).encode(out);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        out.extend_from_slice(&bytes);
        out.extend(std::iter::repeat_n(0, padding));
    }
}

impl Decode for ListedParts {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut bytes = Reader::new(r.opaque(LISTED_BYTES_MAX)?);
        let count: u32 = take_number(&mut bytes)?;
        if count as usize > LISTED_PARTS_MAX {
            return Err(DecodeError::TooLong { limit: LISTED_PARTS_MAX, got: count as usize });
        }
        let mut before = Before::default();
        let parts = (0..count).map(|_| before.take(&mut bytes)).collect::<Result<Vec<_>, _>>()?;
        bytes.finish()?;
        Ok(Self(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u32 = 1 << 20;

    fn part(n: u64, copies: Vec<ListedCopy>) -> ListedPart {
        let crc = (n as u32).wrapping_mul(0x9e37_79b9);
        let chunk = ListedChunk { length: MIB, crc, offset: 0 };
        let chunk = if copies.is_empty() { ListedChunk::default() } else { chunk };
        ListedPart { start: n * u64::from(MIB), length: MIB, chunk, copies }
    }

    fn at(drive: u32, id: u128) -> ListedCopy {
        ListedCopy { drive, id }
    }

    fn again(parts: Vec<ListedPart>) -> usize {
        let list = ListedParts::new(parts).unwrap();
        let bytes = list.to_bytes();
        assert_eq!(ListedParts::from_bytes(&bytes), Ok(list));
        bytes.len()
    }

    #[test]
    fn a_part_that_follows_the_one_before_takes_five_bytes() {
        let regular = |n: u64| part(n, vec![at(0, (7 << 64) + 0x10_1000 * u128::from(n))]);
        let (one, many) = (again(vec![regular(0)]), again((0..1000).map(regular).collect()));
        // The second tells its step, and the count takes one byte more.
        assert!(many - one <= 999 * 5 + 12, "{one} {many}");
    }

    #[test]
    fn all_that_a_layout_can_say_is_told() {
        let parts = vec![
            part(1, vec![at(0, u128::MAX), at(2, 0)]),
            part(2, vec![at(2, 1), at(0, 5)]),
            part(3, Vec::new()),
            part(4, vec![at(1, 1 << 100)]),
            part(9, vec![at(1, 1 << 99)]),
            ListedPart {
                start: 10 * u64::from(MIB),
                length: 5,
                chunk: ListedChunk { length: MIB, crc: 1, offset: 70 },
                copies: vec![at(1, 3), at(1, 3)],
            },
            ListedPart { start: u64::MAX - 1, length: 1, ..ListedPart::default() },
        ];
        again(parts);
        again(Vec::new());
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let bad = |parts| assert_eq!(ListedParts::new(parts), None);
        bad((0..=LISTED_PARTS_MAX as u64).map(|n| part(n, Vec::new())).collect());
        bad(vec![part(1, Vec::new()), part(0, Vec::new())]);
        bad(vec![part(0, vec![at(3, 1)])]);
        bad(vec![part(0, vec![at(0, 1); 4])]);
        bad(vec![ListedPart { copies: Vec::new(), ..part(0, vec![at(0, 1)]) }]);
        bad(vec![ListedPart { start: u64::MAX, ..part(0, Vec::new()) }]);
        let decoded = |bytes: &[u8]| {
            let mut out = (bytes.len() as u32).to_bytes();
            out.extend_from_slice(bytes);
            out.resize(out.len().next_multiple_of(4), 0);
            ListedParts::from_bytes(&out)
        };
        assert_eq!(decoded(&[0]), Ok(ListedParts::default()));
        let wrong: [&[u8]; 9] = [
            // Nothing, too many, too few, more than said, an unknown flag.
            &[],
            &[0x81, 0x08],
            &[1],
            &[0, 0],
            &[1, 0x20],
            // A chunk without a copy, a fourth copy, a fourth drive, a number without end.
            &[1, INSIDE, 1, 1],
            &[1, PLACES, 4, 0, 0, 0, 0],
            &[1, PLACES, 1, 3],
            &[0xff; 30],
        ];
        for bytes in wrong {
            assert!(decoded(bytes).is_err(), "{bytes:?}");
        }
        let longest = [1, GAP, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(decoded(&longest).is_ok());
        assert!(decoded(&[&longest[..], &[GAP, 1]].concat()).is_err(), "no count");
        let beyond = [2, GAP, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, LENGTH, 1];
        assert!(decoded(&beyond).is_err(), "beyond the end of all files");
    }

    #[test]
    fn the_longest_list_fits() {
        // Every field of every part is encoded, each in its longest form.
        let far = |n: u64, drive: u32| at(drive, if n.is_multiple_of(2) { 1 << 126 } else { 0 });
        let parts = (0..LISTED_PARTS_MAX as u64).map(|n| ListedPart {
            start: n << 53,
            length: u32::MAX - (n as u32 % 2),
            chunk: ListedChunk { length: u32::MAX, crc: 1, offset: u32::MAX },
            copies: (0..3).map(|place| far(n, (n as u32 + place) % 3)).collect(),
        });
        let bytes = again(parts.collect());
        assert!((70 << 10..LISTED_BYTES_MAX).contains(&bytes), "{bytes}");
    }
}
