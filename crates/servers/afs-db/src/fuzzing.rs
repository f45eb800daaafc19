//! Entry points of the fuzz targets: each function takes any bytes and must return without a panic.

use crate::import::samples::{LocationFile, ProtectionFile};
use crate::import::{location, protection};

/// A location database of OpenAFS and its redo log. See [`damaged`] for how the bytes are used.
pub fn import_location(bytes: &[u8]) {
    let mut sample = LocationFile::new([2, 3, 4, 4][usize::from(bytes.first().unwrap_or(&0) & 3)]);
    for n in 0..12u32 {
        let id = 10 * n + 1;
        sample.entry(&format!("v{n}"), [id, id + 1, id + 8191 * 2], &[[0, 0, 4], [1, 1, 2]]);
    }
    let (database, log) = damaged(sample.file.bytes(), bytes);
    let Ok(read) = location::read(&database.as_slice(), Some(&log)) else { return };
    let mut names: Vec<_> = read.entries.iter().map(|entry| &entry.name).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name twice");
    let mut rows = crate::MemoryRows::default();
    let part = location::Part {
        servers: read.servers,
        entries: read.entries,
        next_volume_id: read.next_volume_id,
        first: true,
        last: true,
        merge: false,
        replace: false,
    };
    let merged = location::write(&mut rows, &part);
    assert!(merged.is_ok_and(|merged| merged.conflicts.is_empty()), "what was read can be written");
}

/// A protection database of OpenAFS and its redo log. See [`damaged`] for how the bytes are used.
pub fn import_protection(bytes: &[u8]) {
    let mut sample = ProtectionFile::new();
    let many: Vec<i32> = (1..=60).collect();
    for id in &many {
        sample.entry(&format!("u{id}"), *id, -204, &[-206]);
    }
    sample.entry("u1:all", -206, 1, &many);
    sample.entry("u1:outer", -207, 1, &[-206, 1]);
    let (database, log) = damaged(sample.file.bytes(), bytes);
    let Ok(read) = protection::read(&database.as_slice(), Some(&log)) else { return };
    let mut rows = crate::MemoryRows::default();
    let part = protection::Part {
        entries: read.entries,
        memberships: read.memberships,
        max_user: read.max_user,
        max_group: read.max_group,
        first: true,
        last: true,
        merge: false,
        replace: false,
    };
    let merged = crate::protection::import::write(&mut rows, &part);
    assert!(merged.is_ok_and(|merged| merged.conflicts.is_empty()), "what was read can be written");
}

/// A sound database with some bytes changed: of each five input bytes, three give the position and two are
/// written. One such group in eight goes into a redo log instead.
fn damaged<'a>(sound: &[u8], bytes: &'a [u8]) -> (Vec<u8>, DamagedLog<'a>) {
    let (log, changes) = bytes.split_at(bytes.len() / 8);
    let mut database = sound.to_vec();
    for change in changes.chunks_exact(5) {
        let place = u32::from_be_bytes([0, change[0], change[1], change[2]]) as usize;
        // Half of the positions are in the entries, which follow the much larger header.
        let tail = database.len().saturating_sub(4096);
        let at =
            if change[0] & 1 == 0 { place % database.len() } else { tail + place % (database.len() - tail) };
        for (n, byte) in change[3..].iter().enumerate() {
            if let Some(old) = database.get_mut(at + n) {
                *old = *byte;
            }
        }
    }
    (database, DamagedLog(log))
}

/// A redo log with arbitrary content after a header.
struct DamagedLog<'a>(&'a [u8]);

impl crate::import::Source for DamagedLog<'_> {
    fn size(&self) -> u64 {
        64 + self.0.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        crate::import::Source::read_at(&self.0, offset.saturating_sub(64), into)
    }
}
