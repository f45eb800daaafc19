//! Places of a disk file: which have data by its file system, which are in memory, and holes made of them.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::cache::Ranges;

/// Shorter holes count as data.
const HOLE_MIN: u64 = 64 << 10;
/// Ranges of data of one file; the last one extends to the end of a file that has more.
const RANGES_MAX: usize = 1 << 16;

/// All ranges with data. On a file system without holes, the whole file.
pub(super) fn data_of(file: &File) -> io::Result<Ranges> {
    let mut data = Ranges::new();
    let mut last = 0..0;
    while let Some(start) = next(file, SeekFrom::Data(last.end))? {
        let end = match data.count() < RANGES_MAX {
            true => next(file, SeekFrom::Hole(start))?.unwrap_or(start),
            false => file.metadata()?.len(),
        };
        if end <= start {
            // Truncated meanwhile.
            break;
        }
        last = if start - last.end < HOLE_MIN { last.start..end } else { start..end };
        data.insert(last.clone());
    }
    Ok(data)
}

/// The next position of a kind; `None` if there is none before the end.
fn next(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Bytes of a file, if all are in memory: a short read is the end of the file, or of what is there.
pub(super) fn in_memory(file: &File, pos: u64, len: usize) -> Option<Vec<u8>> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let mut out = vec![0; len];
    let read = preadv2(file, &mut [io::IoSliceMut::new(&mut out)], pos, ReadWriteFlags::NOWAIT);
    (read == Ok(len)).then_some(out)
}

/// Makes a hole of these bytes, as far as they are in the file.
pub(super) fn punch(file: &File, pos: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, pos, len)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn data_between_holes_is_found_and_short_holes_are_not() {
        let file = tempfile::tempfile().unwrap();
        assert!(data_of(&file).unwrap().is_empty());
        file.set_len(1 << 40).unwrap();
        assert!(data_of(&file).unwrap().is_empty());
        for place in [0, 20_000, 1 << 30] {
            file.write_all_at(b"data", place).unwrap();
        }
        let found: Vec<_> = data_of(&file).unwrap().iter().collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].start == 0 && found[0].end >= 20_004 && found[0].end < 1 << 20);
        assert!(found[1].start <= 1 << 30 && found[1].end >= (1 << 30) + 4 && found[1].end < 1 << 31);
    }
}
