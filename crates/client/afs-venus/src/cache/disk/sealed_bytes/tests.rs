//! Random operations on files of both sorts, compared with bytes in memory; writers of one sector beside one another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Barrier};

use afs_own::Opening;
use afs_wire::ids::CellName;

use super::super::file::DiskFile;
use super::*;
use crate::cache::CacheFile;
use crate::cache::encryption::{CacheCipher, CacheSecret};

fn cipher() -> CacheCipher {
    CacheSecret::new(CellName::new("example.org").unwrap(), "alice".into(), [3; 32], [5; 16]).cipher(&[5; 16])
}

/// A generator of numbers by a seed (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A place in the file or a little beyond, often at a border of sectors.
    fn place(&mut self, len: u64) -> u64 {
        let place = self.below(len + 3 * SECTOR);
        match self.below(4) {
            0 => sector_of(place),
            1 => sector_of(place) + self.below(3),
            2 => (sector_of(place) + SECTOR).saturating_sub(self.below(3)),
            _ => place,
        }
    }

    fn length(&mut self) -> u64 {
        let most = [16, SECTOR, 3 * SECTOR, 20 * SECTOR];
        let most = most[self.below(4) as usize];
        if self.below(3) == 0 { sector_of(most) } else { self.below(most) }
    }

    fn bytes(&mut self, len: u64) -> Vec<u8> {
        let kind = self.below(5);
        (0..len).map(|_| if kind == 0 { 0 } else { self.next() as u8 }).collect()
    }
}

struct Model<'a> {
    path: &'a Path,
    is_sealed: bool,
    unkept: Arc<AtomicU64>,
    file: DiskFile,
    bytes: Vec<u8>,
    counts: BTreeMap<&'static str, u32>,
}

const OPERATIONS: [&str; 8] = ["write", "cut", "stretch", "discard", "zero", "read", "read now", "reopen"];

impl<'a> Model<'a> {
    fn new(path: &'a Path, is_sealed: bool) -> Self {
        let unkept = Arc::default();
        let cipher = is_sealed.then(cipher);
        let file = DiskFile::create(7, path.to_owned(), &unkept, cipher.as_ref()).unwrap();
        Model { path, is_sealed, unkept, file, bytes: Vec::new(), counts: BTreeMap::new() }
    }

    fn step(&mut self, numbers: &mut Numbers) {
        let len = self.bytes.len() as u64;
        let operation = OPERATIONS[[0, 0, 0, 1, 2, 3, 4, 5, 5, 6, 7][numbers.below(11) as usize]];
        let (place, length) = (numbers.place(len), numbers.length());
        let end = (place + length).min(len);
        match operation {
            "write" => {
                let data = numbers.bytes(length);
                self.file.write_at(place, &data).unwrap();
                if !data.is_empty() {
                    let end = (place + length) as usize;
                    self.bytes.resize(self.bytes.len().max(end), 0);
                    self.bytes[place as usize..end].copy_from_slice(&data);
                }
            }
            "cut" => self.set_len(place.min(len)),
            "stretch" => self.set_len(len + length),
            "discard" => {
                self.file.discard(place, length.max(1)).unwrap();
                self.zeroed(place, place.saturating_add(length.max(1)).min(len));
            }
            "zero" if place < end => {
                self.file.zero(place, end - place).unwrap();
                self.zeroed(place, end);
            }
            "read now" if place < end => {
                // What was written just now is in memory, but no file system has to say so.
                let Some(read) = self.file.read_now(place, (end - place) as usize) else { return };
                assert_eq!(read, self.bytes[place as usize..end as usize]);
                assert_eq!(self.file.read_now(len - 1, 2), None, "beyond the end");
            }
            "reopen" => {
                self.file.set_kept(true);
                let cipher = self.is_sealed.then(cipher);
                self.file = DiskFile::open(7, self.path.to_owned(), &self.unkept, cipher.as_ref()).unwrap();
            }
            "read" => {
                let read = self.file.read_at(place, length as usize).unwrap();
                let wanted = self.bytes.get(place as usize..end as usize).unwrap_or_default();
                assert_eq!(read, wanted);
            }
            _ => return,
        }
        *self.counts.entry(operation).or_default() += 1;
    }

    fn set_len(&mut self, len: u64) {
        self.file.set_len(len).unwrap();
        self.bytes.resize(len as usize, 0);
    }

    fn zeroed(&mut self, from: u64, to: u64) {
        if let Some(bytes) = self.bytes.get_mut(from as usize..to.max(from) as usize) {
            bytes.fill(0);
        }
    }

    /// The whole file, and that what counts as a hole has no bytes.
    fn check(&self) {
        let len = self.bytes.len() as u64;
        assert_eq!(self.file.len().unwrap(), len);
        assert_eq!(self.file.read_at(0, len as usize + 9).unwrap(), self.bytes);
        let data = self.file.data().unwrap();
        assert!(data.end() <= len, "{data:?} of {len}");
        for hole in data.gaps(0..len) {
            assert!(self.bytes[hole.start as usize..hole.end as usize].iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn random_operations_do_to_an_encrypted_file_what_they_do_to_bytes_in_memory() {
    let mut counts = BTreeMap::new();
    for seed in 0..60 {
        let dir = tempfile::tempdir().unwrap();
        for is_sealed in [false, true] {
            let path = dir.path().join(is_sealed.to_string());
            let (mut model, mut numbers) = (Model::new(&path, is_sealed), Numbers(seed));
            for step in 0..120 {
                let before = model.counts.clone();
                model.step(&mut numbers);
                let done = || {
                    format!("seed {seed}, step {step}, encrypted {is_sealed}: {before:?} {:?}", model.counts)
                };
                let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| model.check()));
                assert!(checked.is_ok(), "{}", done());
            }
            model.file.set_kept(true);
            for (operation, count) in model.counts {
                *counts.entry((is_sealed, operation)).or_insert(0) += count;
            }
        }
    }
    for is_sealed in [false, true] {
        for operation in OPERATIONS {
            assert!(
                counts.get(&(is_sealed, operation)).is_some_and(|count| *count > 100),
                "{operation}: {counts:?}"
            );
        }
    }
}

fn sealed(path: &Path) -> SealedBytes {
    let file = Opening::write().or_make().open(path).unwrap();
    SealedBytes::new(file, cipher().file(1)).unwrap()
}

#[test]
fn writers_of_parts_of_one_sector_lose_nothing_of_each_other() {
    const WRITERS: u64 = 4;
    let dir = tempfile::tempdir().unwrap();
    let bytes = sealed(&dir.path().join("file"));
    let barrier = Barrier::new(WRITERS as usize);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (bytes, barrier) = (&bytes, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..500 {
                    // Each has every fourth place of 10 bytes, in sectors that all have.
                    let place = (round * WRITERS + writer) * 10;
                    bytes.write_at(place, &[writer as u8 + 1; 10]).unwrap();
                    assert_eq!(bytes.read_at(place, 10).unwrap(), [writer as u8 + 1; 10].as_slice());
                }
            });
        }
    });
    let all = bytes.read_at(0, 1 << 20).unwrap();
    assert_eq!(all.len(), 20_000);
    assert!(all.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / 10 % 4 + 1));
}

#[test]
fn the_length_is_told_by_that_of_the_file_on_disk() {
    for len in [0, 1, 4095, 4096, 4097, 8191, 8192, 10_000] {
        assert_eq!(len_of(on_disk_len(len)), len);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    sealed(&path).write_at(5000, b"end").unwrap();
    assert_eq!(sealed(&path).len(), 5003);
    let found = sealed(&path);
    assert_eq!(found.data().unwrap().end(), 5003, "the tail is no data");
    found.set_len(1 << 40).unwrap();
    assert_eq!((sealed(&path).len(), sealed(&path).data().unwrap().end() < 1 << 20), (1 << 40, true));
    assert_eq!(found.read_at((1 << 40) - 4, 9).unwrap(), [0; 4].as_slice());
}
