//! Values that look like log records: a value is data, whatever its bytes are.

// Tests may panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_env::Parts;
use afs_kv::{Blob, Config, Kv, Medium, MemoryMedium, Outcome};

fn open(medium: &MemoryMedium) -> Kv {
    Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), config()).unwrap()
}

/// A log that rotates after 4 KiB.
fn config() -> Config {
    Config { log_bytes: 4 << 10, cache_bytes: 1 << 20, ..Config::default() }
}

fn put(kv: &Kv, key: &[u8], value: &[u8]) -> u64 {
    let (key, value) = (key.to_vec(), value.to_vec());
    let (sender, receiver) = std::sync::mpsc::channel();
    kv.submit(
        Box::new(move |txn| {
            txn.put("a", &key, value);
            Ok(())
        }),
        Box::new(move |outcome| sender.send(outcome).unwrap()),
    );
    match receiver.recv().unwrap() {
        Outcome::Committed(sequence) => sequence,
        other => panic!("{other:?}"),
    }
}

/// A complete record of format 1 that sets one row.
fn record_of_format_1(sequence: u64) -> Vec<u8> {
    let mut out = vec![0; 24];
    out.extend_from_slice(&forged_row());
    out[..4].copy_from_slice(b"AKL1");
    out[8..16].copy_from_slice(&sequence.to_le_bytes());
    out[16..20].copy_from_slice(&(forged_row().len() as u32).to_le_bytes());
    out[20..24].copy_from_slice(&1u32.to_le_bytes());
    let sum = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

/// A complete record of format 2, for a log whose salt is `salt`.
fn record_of_format_2(sequence: u64, salt: [u8; 16]) -> Vec<u8> {
    let mut out = vec![0; 40];
    out.extend_from_slice(&forged_row());
    out[..4].copy_from_slice(b"AKL2");
    out[8..24].copy_from_slice(&salt);
    out[24..32].copy_from_slice(&sequence.to_le_bytes());
    out[32..36].copy_from_slice(&(forged_row().len() as u32).to_le_bytes());
    out[36..40].copy_from_slice(&1u32.to_le_bytes());
    let sum = crc32c::crc32c(&out[8..]);
    out[4..8].copy_from_slice(&sum.to_le_bytes());
    out.resize(out.len().next_multiple_of(8), 0);
    out
}

fn forged_row() -> Vec<u8> {
    let mut row = Vec::new();
    row.extend_from_slice(&7u32.to_le_bytes());
    row.extend_from_slice(&1u32.to_le_bytes());
    row.extend_from_slice(b"\x01forged!");
    row
}

fn forgeries(sequence: u64) -> [Vec<u8>; 3] {
    [
        record_of_format_1(sequence),
        record_of_format_2(sequence, [0; 16]),
        record_of_format_2(sequence, [0xff; 16]),
    ]
}

/// The salt of the turn that a log file holds, which is in its header.
fn salt_of(medium: &MemoryMedium, name: &str) -> [u8; 16] {
    let mut header = [0; 32];
    medium.open(name).unwrap().read_at(0, &mut header).unwrap();
    header[8..24].try_into().unwrap()
}

/// Who has read the salt stores records of the turn, and a power failure tears the batch with them, at its end, or at its beginning too.
#[test]
fn who_knows_the_salt_plants_no_record_in_a_batch_that_a_crash_tears() {
    for is_head_lost in [false, true] {
        let medium = MemoryMedium::new();
        let kv = Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), Config::default()).unwrap();
        put(&kv, b"first", b"acknowledged");
        let name =
            if medium.open("log.a").unwrap().len().unwrap() > 8192 && salt_of(&medium, "log.a") != [0; 16] {
                "log.a"
            } else {
                "log.b"
            };
        let (salt, blob) = (salt_of(&medium, name), medium.open(name).unwrap());
        let end = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
        let whole = || {
            let mut bytes = vec![0; blob.len().unwrap() as usize];
            blob.read_at(0, &mut bytes).unwrap();
            bytes
        };
        let before = end(&whole()).next_multiple_of(8);
        let forged = record_of_format_2(1 << 62, salt);
        put(&kv, b"bait", &at_every_alignment(&forged, 16 << 10));
        drop(kv);
        let after = end(&whole());
        let torn = before + (after - before) * 6 / 10;
        let lost = if is_head_lost { before..before + 512 } else { torn..torn };
        for gone in [lost, torn..after] {
            blob.write_at(gone.start, &vec![0; (gone.end - gone.start) as usize]).unwrap();
        }
        let kv = Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), Config::default()).unwrap();
        assert_not_forged(&kv);
        assert_eq!(kv.snapshot().get("a", b"first").unwrap().unwrap(), &b"acknowledged"[..]);
        assert_eq!(kv.snapshot().get("a", b"bait").unwrap(), None, "it was torn");
    }
}

/// What holds the salt is stored as all else.
#[test]
fn a_value_with_the_salt_of_its_turn_is_kept_as_it_is() {
    let medium = MemoryMedium::new();
    let kv = Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), Config::default()).unwrap();
    put(&kv, b"first", b"");
    let salts = ["log.a", "log.b"].map(|name| salt_of(&medium, name));
    let value = at_every_alignment(
        &[record_of_format_2(9, salts[0]), record_of_format_2(9, salts[1])].concat(),
        16 << 10,
    );
    put(&kv, b"value", &value);
    drop(kv);
    let kv = Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), Config::default()).unwrap();
    assert_eq!(kv.snapshot().get("a", b"value").unwrap().unwrap(), value);
}

fn assert_not_forged(kv: &Kv) {
    assert_eq!(kv.snapshot().get("a", b"forged").unwrap(), None, "a planted record was taken for a batch");
}

/// Copies of `planted` one byte further apart than it is long, so that copies begin at every alignment.
fn at_every_alignment(planted: &[u8], len: usize) -> Vec<u8> {
    planted.iter().copied().chain([0]).cycle().take(len).collect()
}

#[test]
fn a_value_that_holds_a_record_of_a_high_number_is_no_damage() {
    for planted in forgeries(u64::MAX - 15) {
        let medium = MemoryMedium::new();
        let kv = open(&medium);
        put(&kv, b"bait", &at_every_alignment(&planted, 16 << 10));
        put(&kv, b"more", &at_every_alignment(&planted, 16 << 10));
        drop(kv);
        // The files of the log are overwritten in turn, each time with less data.
        for round in 0..3u8 {
            let kv = open(&medium);
            put(&kv, b"last", &[round]);
            assert_not_forged(&kv);
        }
        let kv = open(&medium);
        assert_eq!(kv.snapshot().get("a", b"last").unwrap().unwrap(), &[2][..]);
    }
}

#[test]
fn a_log_that_ends_where_a_planted_record_begins_goes_no_further() {
    for planted in forgeries(4) {
        for pad in (0..=(planted.len() + 1) * 8).step_by(8) {
            let medium = MemoryMedium::new();
            let kv = open(&medium);
            // The first turn leaves planted records all over the first file.
            assert_eq!(put(&kv, b"bait", &at_every_alignment(&planted, 16 << 10)), 1);
            assert_eq!(put(&kv, b"turn", &[0; 5000]), 2);
            // The next turn there overwrites the beginning, and ends anywhere within the earlier data.
            assert_eq!(put(&kv, b"pad", &vec![1; pad]), 3);
            drop(kv);
            let kv = open(&medium);
            assert_not_forged(&kv);
            assert_eq!(kv.snapshot().sequence(), 3);
            assert_eq!(kv.snapshot().get("a", b"pad").unwrap().unwrap(), vec![1; pad]);
        }
    }
}

#[test]
fn recovery_reads_no_byte_of_the_log_more_than_a_few_times() {
    let mut older = [&b"AKL1\0\0\0\0"[..], &[0xff; 8], &0x4000u32.to_le_bytes()].concat();
    older.extend_from_slice(&[1, 0, 0, 0]);
    let mut newer = [&b"AKL2\0\0\0\0"[..], &[0; 16], &[0xff; 8], &0x4000u32.to_le_bytes()].concat();
    newer.extend_from_slice(&[1, 0, 0, 0]);
    for head in [older, newer] {
        let medium = CountingMedium::default();
        let config = Config { log_bytes: 8 << 20, cache_bytes: 1 << 20, ..Config::default() };
        let open = || Kv::open(Arc::new(medium.clone()), &["a"], Parts::inline(), config.clone()).unwrap();
        let kv = open();
        put(&kv, b"bait", &at_every_alignment(&head, 1 << 20));
        // The next turn ends before the planted records.
        kv.checkpoint().unwrap();
        kv.checkpoint().unwrap();
        put(&kv, b"k", b"v");
        drop(kv);
        let len = |name: &&str| medium.inner.open(name).unwrap().len().unwrap();
        let length: u64 = ["log.a", "log.b"].iter().map(len).sum();
        medium.log_bytes_read.store(0, Ordering::Relaxed);
        drop(open());
        let read = medium.log_bytes_read.load(Ordering::Relaxed);
        assert!(read <= 4 * length, "{read} bytes read of {length}");
    }
}

/// Counts the bytes of the log that are read.
#[derive(Clone, Default)]
struct CountingMedium {
    inner: MemoryMedium,
    log_bytes_read: Arc<AtomicU64>,
}

impl Medium for CountingMedium {
    fn open(&self, name: &str) -> io::Result<Arc<dyn Blob>> {
        let blob = self.inner.open(name)?;
        match name.starts_with("log.") {
            true => Ok(Arc::new(CountingBlob { inner: blob, read: self.log_bytes_read.clone() })),
            false => Ok(blob),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
}

#[derive(Debug)]
struct CountingBlob {
    inner: Arc<dyn Blob>,
    read: Arc<AtomicU64>,
}

impl Blob for CountingBlob {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.inner.read_at(offset, out)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.inner.write_at(offset, data)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}
