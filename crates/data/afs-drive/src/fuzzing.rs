//! Entry points of fuzz targets: any bytes of a segment must be read without a panic, and only what has its checksums counts as a
//! chunk. `fuzz/` calls them with bytes from libFuzzer, the tests here with seeded ones.
#![allow(clippy::expect_used, reason = "the panic is the finding")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use afs_env::Parts;

use crate::chunk::{ChunkId, ChunkRef, MAX_CHUNK_LEN};
use crate::drive::Drive;
use crate::header::{self, BLOCK, footprint};
use crate::memory_segments::MemorySegments;
use crate::scan::ScanReport;
use crate::segment_drive::SegmentDrive;
use crate::segment_store::SegmentStore;

/// Number of the segment that is read.
const SEGMENT: u64 = 3;
/// Room for it.
const ROOM: u64 = 64 << 20;
/// Most chunks that are put into one.
const CHUNKS_MAX: usize = 8;

/// The header of a chunk: the bytes themselves, and with the magic number, the place and the checksum that they must have.
pub fn chunk_header(bytes: &[u8]) {
    read_header(bytes);
    read_header(&completed(bytes, ChunkId::from_parts(SEGMENT, 0)));
}

fn read_header(bytes: &[u8]) {
    let Some(id) = bytes.get(8..24).and_then(|id| id.try_into().ok()).map(ChunkId::from_bytes) else {
        return;
    };
    if let Some(chunk) = header::found(bytes, id) {
        let sums = header::decode(&bytes[..header::data_start(chunk.len) as usize], chunk);
        let sums = sums.expect("what was found is a header");
        let written = header::encode(chunk, &sums);
        assert_eq!(header::decode(&written, chunk), Some(sums), "a header is not what it encodes to");
        assert!(footprint(chunk.len) >= written.len() as u64 + u64::from(chunk.len));
    }
}

/// The same bytes as a header without any other fault than those in its numbers.
fn completed(bytes: &[u8], id: ChunkId) -> Vec<u8> {
    let mut header = bytes.to_vec();
    header.resize(header.len().max(32), 0);
    header[..4].copy_from_slice(b"AKC1");
    header[8..24].copy_from_slice(&id.to_bytes());
    let len =
        u32::from_le_bytes([header[24], header[25], header[26], header[27]]) % (MAX_CHUNK_LEN as u32 + 2);
    header[24..28].copy_from_slice(&len.to_le_bytes());
    header.resize(header::data_start(len) as usize, 0);
    let sum = crc32c::crc32c(&header[8..]);
    header[4..8].copy_from_slice(&sum.to_le_bytes());
    header
}

/// A segment of chunks with changes, of which each has 4 bytes (place and value), behind the chunks' lengths: it is scanned, and each
/// chunk is read. What is damaged is an error or unknown; what is read is what was written.
///
/// # Panics
/// If bytes are read that were not written.
pub fn segment(bytes: &[u8]) {
    let Some((count, rest)) = bytes.split_first() else { return };
    let (lens, changes) = rest.split_at(rest.len().min(2 * (usize::from(*count) % CHUNKS_MAX)));
    let lens = lens.chunks_exact(2).map(|len| u32::from(u16::from_be_bytes([len[0], len[1]])) * 3 + 1);
    let (mut contents, chunks) = laid_out(lens);
    change(&mut contents, changes);
    let store = MemorySegments::new(ROOM);
    if !contents.is_empty() && store.write_at(SEGMENT, 0, &contents).is_err() {
        return;
    }
    let Ok(drive) = SegmentDrive::open(store, Parts::inline(), 1 << 30) else { return };
    let report = now(drive.scan()).unwrap_or_default();
    check_report(&report, contents.len() as u64);
    for (chunk, data) in chunks {
        if let Ok(read) = now(drive.read(chunk, 0..chunk.len)) {
            assert!(read == data, "other bytes than those of {chunk:?}");
        }
    }
}

/// Chunks of these lengths one after the other, as a drive writes them.
fn laid_out(lens: impl Iterator<Item = u32>) -> (Vec<u8>, Vec<(ChunkRef, Vec<u8>)>) {
    let (mut contents, mut chunks) = (Vec::new(), Vec::new());
    for len in lens {
        let data: Vec<u8> = (0..len).map(|at| (at ^ len) as u8).collect();
        let sums = header::piece_sums(&data);
        let crc = header::combined(&sums, data.len());
        let chunk = ChunkRef { id: ChunkId::from_parts(SEGMENT, contents.len() as u64), len, crc };
        let end = contents.len() as u64 + footprint(len);
        contents.extend_from_slice(&header::encode(chunk, &sums));
        contents.extend_from_slice(&data);
        contents.resize(end as usize, 0);
        chunks.push((chunk, data));
    }
    (contents, chunks)
}

/// Most places are in headers, where a change says most. A change of value 0xff ends the segment there.
fn change(contents: &mut Vec<u8>, changes: &[u8]) {
    for change in changes.chunks_exact(4) {
        let [block, high, low, value] = [change[0], change[1], change[2], change[3]];
        let within = usize::from(u16::from_be_bytes([high, low])) % BLOCK as usize;
        let at = usize::from(block) * BLOCK as usize + if high & 0x80 == 0 { within % 64 } else { within };
        match contents.get_mut(at) {
            Some(_) if value == 0xff => contents.truncate(at),
            Some(byte) => *byte ^= value,
            None => {}
        }
    }
}

fn check_report(report: &ScanReport, len: u64) {
    assert!(report.bytes + report.chunks <= len + report.chunks, "more bytes than there are: {report:?}");
    for bad in &report.bad {
        assert!(bad.range.start <= bad.range.end && bad.range.start <= len, "{bad:?} of {len} bytes");
    }
}

/// The outcome of work that is done at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("work done at once leaves nothing pending"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_laid_out_is_read_and_damage_is_found() {
        let (contents, chunks) = laid_out([1, 5000, 70_000].into_iter());
        let store = MemorySegments::new(ROOM);
        store.write_at(SEGMENT, 0, &contents).unwrap();
        let drive = SegmentDrive::open(store, Parts::inline(), 1 << 30).unwrap();
        assert_eq!(now(drive.scan()).unwrap().chunks, 3);
        assert_eq!(now(drive.read(chunks[2].0, 0..70_000)).unwrap(), chunks[2].1);
        let header = completed(&contents[..32], ChunkId::from_parts(SEGMENT, 0));
        assert!(header::found(&header, ChunkId::from_parts(SEGMENT, 0)).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            chunk_header(&bytes);
            segment(&bytes);
        }
    }
}
