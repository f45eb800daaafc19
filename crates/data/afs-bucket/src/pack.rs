//! Pack: many chunks in one object. Layout: `docs/format.md` "Pack".

use std::ops::Range;

use afs_drive::{ChunkRef, MAX_CHUNK_LEN};
use bytes::Bytes;

use crate::names::PackId;

/// The most chunks of a pack, which bounds its index to 48 KiB.
pub(crate) const CHUNKS_MAX: usize = 4096;
/// Bytes before the first chunk.
pub(crate) const HEADER_LEN: usize = 24;
/// Bytes before each chunk.
pub(crate) const RECORD_LEN: usize = 8;
/// Chunks begin at multiples of this.
const ALIGNED: usize = 8;
/// Bytes of the index for each chunk.
const ENTRY_LEN: usize = 12;
/// Bytes after the index.
const FOOTER_LEN: usize = 12;
const MAGIC: [u8; 4] = *b"AKP1";
const END: [u8; 4] = *b"AKPE";

/// Random number of a run, which makes its packs differ from those of any other run with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Salt(pub(crate) [u8; 8]);

/// An entry of the index: a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where its record begins.
    pub(crate) offset: u32,
    pub(crate) len: u32,
    pub(crate) crc: u32,
}

/// A pack that takes chunks.
pub(crate) struct Builder {
    id: PackId,
    entries: Vec<Entry>,
    /// The header; then for each chunk the padding of the one before with its record, and its bytes.
    parts: Vec<Bytes>,
    len: usize,
}

/// A pack that is complete.
pub(crate) struct Pack {
    pub(crate) id: PackId,
    entries: Vec<Entry>,
    /// All bytes of the object.
    pub(crate) body: Vec<Bytes>,
    /// Length of the object.
    pub(crate) len: u64,
    /// Index and footer, which end the object. They have the checksums of everything in it.
    pub(crate) tail: Bytes,
}

/// Bytes of the object up to the end of a record at `offset` with a chunk of `len` bytes, the padding not counted.
pub(crate) fn record_end(offset: u32, len: u32) -> u64 {
    u64::from(offset) + RECORD_LEN as u64 + u64::from(len)
}

/// Length of a pack of these chunks, which are in the order of their ids and leave no gap; `None` if they do leave one.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn len_of(chunks: &[ChunkRef]) -> Option<u64> {
    let mut end = HEADER_LEN as u64;
    for chunk in chunks {
        let (_, offset) = chunk.id.parts();
        if offset != end {
            return None;
        }
        end = (offset + RECORD_LEN as u64 + u64::from(chunk.len)).next_multiple_of(ALIGNED as u64);
    }
    Some(end + (chunks.len() * ENTRY_LEN + FOOTER_LEN) as u64)
}

impl Builder {
    pub(crate) fn new(id: PackId, salt: Salt) -> Self {
        let header = header(id, salt);
        Self { id, entries: Vec::new(), parts: vec![header], len: HEADER_LEN }
    }

    pub(crate) fn id(&self) -> PackId {
        self.id
    }

    /// Whether a chunk of this length may follow, if a pack is to have at most `limit` bytes. The first may always.
    pub(crate) fn fits(&self, len: usize, limit: usize) -> bool {
        let index = (self.entries.len() + 1) * ENTRY_LEN + FOOTER_LEN;
        let end = (self.len.next_multiple_of(ALIGNED) + RECORD_LEN + len).next_multiple_of(ALIGNED) + index;
        self.entries.is_empty() || self.entries.len() < CHUNKS_MAX && end <= limit
    }

    /// Appends a chunk, of at most [`MAX_CHUNK_LEN`] bytes, that fits.
    pub(crate) fn push(&mut self, data: Bytes, crc: u32) -> ChunkRef {
        let offset = self.len.next_multiple_of(ALIGNED);
        let entry = Entry { offset: offset as u32, len: data.len() as u32, crc };
        let mut record = vec![0; offset - self.len];
        record.extend_from_slice(&entry.len.to_le_bytes());
        record.extend_from_slice(&crc.to_le_bytes());
        self.len = offset + RECORD_LEN + data.len();
        self.parts.push(record.into());
        self.parts.push(data);
        self.entries.push(entry);
        ChunkRef { id: self.id.chunk(entry.offset), len: entry.len, crc }
    }

    /// The bytes of a chunk of this pack.
    pub(crate) fn data(&self, chunk: ChunkRef) -> Option<&Bytes> {
        data(&self.entries, &self.parts, chunk)
    }

    /// Completes the pack.
    pub(crate) fn seal(self) -> Pack {
        let Self { id, entries, mut parts, len } = self;
        let mut index = Vec::with_capacity(entries.len() * ENTRY_LEN + FOOTER_LEN);
        for entry in &entries {
            for word in [entry.offset, entry.len, entry.crc] {
                index.extend_from_slice(&word.to_le_bytes());
            }
        }
        index.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        let crc = parts.first().map_or(0, |header| crc32c::crc32c(header));
        index.extend_from_slice(&crc32c::crc32c_append(crc, &index).to_le_bytes());
        index.extend_from_slice(&END);
        let padding = len.next_multiple_of(ALIGNED) - len;
        let (tail, len) = (Bytes::from(index), (len + padding) as u64);
        parts.push(Bytes::from_static(&[0; ALIGNED]).slice(..padding));
        parts.push(tail.clone());
        Pack { id, entries, body: parts, len: len + tail.len() as u64, tail }
    }
}

impl Pack {
    /// The bytes of a chunk of this pack.
    pub(crate) fn data(&self, chunk: ChunkRef) -> Option<&Bytes> {
        data(&self.entries, &self.body, chunk)
    }

    /// Where the tail is in the object.
    pub(crate) fn tail_range(&self) -> Range<u64> {
        self.len - self.tail.len() as u64..self.len
    }
}

/// The bytes of a chunk whose reference is that of an entry.
fn data<'a>(entries: &[Entry], parts: &'a [Bytes], chunk: ChunkRef) -> Option<&'a Bytes> {
    let (_, offset) = chunk.id.parts();
    let at = entries.binary_search_by_key(&offset, |entry| entry.offset.into()).ok()?;
    let same = entries.get(at).is_some_and(|entry| (entry.len, entry.crc) == (chunk.len, chunk.crc));
    parts.get(2 + 2 * at).filter(|_| same)
}

fn header(id: PackId, salt: Salt) -> Bytes {
    let mut out = Vec::with_capacity(HEADER_LEN);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&id.0.to_be_bytes());
    out.extend_from_slice(&salt.0);
    let crc = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&crc.to_le_bytes());
    out.into()
}

/// The records of a part of a pack that begins with one at `offset`, as far as they are complete and their checksums right.
pub(crate) fn records(id: PackId, offset: u32, part: &Bytes) -> Vec<(ChunkRef, Bytes)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while found.len() < CHUNKS_MAX
        && let Some((chunk, data)) = record(id, offset, part, at)
    {
        at = (at + RECORD_LEN + data.len()).next_multiple_of(ALIGNED);
        found.push((chunk, data));
    }
    found
}

fn record(id: PackId, offset: u32, part: &Bytes, at: usize) -> Option<(ChunkRef, Bytes)> {
    let (len, crc) = (word(part, at)?, word(part, at + 4)?);
    if len == 0 || len as usize > MAX_CHUNK_LEN {
        return None;
    }
    let start = at + RECORD_LEN;
    let data = part.get(start..start + len as usize)?;
    let offset = offset.checked_add(u32::try_from(at).ok()?)?;
    let right = crc32c::crc32c(data) == crc;
    right.then(|| (ChunkRef { id: id.chunk(offset), len, crc }, part.slice(start..start + len as usize)))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes)
}

/// The chunks of a whole pack, if every byte of it is right.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn decode(object: &Bytes) -> Option<(PackId, Vec<ChunkRef>)> {
    let header = object.get(..HEADER_LEN)?;
    let id = PackId(u64::from_be_bytes(header.get(8..16)?.try_into().ok()?));
    let end = object.len().checked_sub(FOOTER_LEN)?;
    let count = word(object, end)? as usize;
    let index = end.checked_sub(count.checked_mul(ENTRY_LEN)?).filter(|_| count <= CHUNKS_MAX)?;
    let sum = crc32c::crc32c_append(crc32c::crc32c(header), object.get(index..end + 4)?);
    let framed = header[..4] == MAGIC && word(header, 4)? == crc32c::crc32c(&header[8..]);
    if !framed || object.get(end + 8..)? != END || word(object, end + 4)? != sum {
        return None;
    }
    let found = records(id, HEADER_LEN as u32, &object.slice(HEADER_LEN.min(index)..index));
    let chunks: Vec<_> = found.into_iter().map(|(chunk, _)| chunk).collect();
    let listed = |(n, chunk): (usize, &ChunkRef)| {
        let at = index + n * ENTRY_LEN;
        let words = (word(object, at), word(object, at + 4), word(object, at + 8));
        words == (u32::try_from(chunk.id.parts().1).ok(), Some(chunk.len), Some(chunk.crc))
    };
    let padded = |chunk: &ChunkRef| {
        let end = record_end(chunk.id.parts().1 as u32, chunk.len) as usize;
        object.get(end..end.next_multiple_of(ALIGNED)).is_some_and(|gap| gap.iter().all(|byte| *byte == 0))
    };
    let whole = chunks.len() == count && len_of(&chunks)? == object.len() as u64;
    (whole && chunks.iter().all(padded) && chunks.iter().enumerate().all(listed)).then_some((id, chunks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(lengths: &[usize]) -> (Vec<ChunkRef>, Pack, Bytes) {
        let mut builder = Builder::new(PackId(0x0000_0002_0000_0003), Salt(*b"saltsalt"));
        let data = |len: usize| Bytes::from((0..len).map(|at| (at * 7 % 251) as u8).collect::<Vec<_>>());
        let chunks: Vec<_> =
            lengths.iter().map(|len| builder.push(data(*len), crc32c::crc32c(&data(*len)))).collect();
        assert_eq!(builder.data(chunks[0]), Some(&data(lengths[0])));
        let pack = builder.seal();
        let whole = Bytes::from(pack.body.concat());
        (chunks, pack, whole)
    }

    #[test]
    fn a_pack_has_what_was_put_into_it() {
        let (chunks, pack, whole) = pack(&[1, 8, 4096, 100_000, 7]);
        assert_eq!(pack.len, whole.len() as u64);
        assert_eq!(len_of(&chunks), Some(pack.len));
        assert_eq!(len_of(&chunks[1..]), None);
        assert_eq!(decode(&whole), Some((pack.id, chunks.clone())));
        let tail = pack.tail_range();
        assert_eq!(pack.tail, whole.slice(tail.start as usize..));
        for chunk in &chunks {
            let (_, offset) = chunk.id.parts();
            let range = offset as usize + RECORD_LEN..record_end(offset as u32, chunk.len) as usize;
            assert_eq!(pack.data(*chunk), Some(&whole.slice(range)));
            assert_eq!(pack.data(ChunkRef { crc: chunk.crc ^ 1, ..*chunk }), None);
        }
        // From any chunk on the others are found, as far as they are complete.
        let (_, offset) = chunks[1].id.parts();
        let part = whole.slice(offset as usize..offset as usize + 50_000);
        let found: Vec<_> = records(pack.id, offset as u32, &part).into_iter().map(|found| found.0).collect();
        assert_eq!(found, chunks[1..3]);
    }

    /// The test vector of `docs/format.md`.
    #[test]
    fn the_pack_of_the_documentation() {
        let mut builder = Builder::new(PackId(0x0000_0001_0000_0000), Salt(*b"andrewfs"));
        for text in ["hello", "drive"] {
            builder.push(Bytes::from(text), crc32c::crc32c(text.as_bytes()));
        }
        let hex: String = builder.seal().body.concat().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, VECTOR.replace([' ', '\n'], ""));
    }

    const VECTOR: &str = "
        414b5031 71ee49c9 00000001 00000000
        616e6472 65776673 05000000 4cbb719a
        68656c6c 6f000000 05000000 111bde9a
        64726976 65000000 18000000 05000000
        4cbb719a 28000000 05000000 111bde9a
        02000000 d34eaae8 414b5045";

    #[test]
    fn no_changed_byte_is_accepted() {
        let (_, _, whole) = pack(&[5, 20]);
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged.into()), None, "bit {bit}");
        }
        for len in 0..whole.len() {
            assert_eq!(decode(&whole.slice(..len)), None);
        }
    }

    #[test]
    fn a_pack_is_bounded() {
        let mut builder = Builder::new(PackId(1), Salt([0; 8]));
        assert!(builder.fits(MAX_CHUNK_LEN, 1000), "the first always fits");
        while builder.fits(1, 1 << 20) {
            builder.push(Bytes::from_static(b"x"), crc32c::crc32c(b"x"));
        }
        assert_eq!(builder.seal().entries.len(), CHUNKS_MAX);
        let mut builder = Builder::new(PackId(1), Salt([0; 8]));
        while builder.fits(1000, 100_000) {
            builder.push(Bytes::from(vec![0; 1000]), 0);
        }
        let len = builder.seal().len;
        assert!((98_000..=100_000).contains(&len), "{len}");
    }
}
