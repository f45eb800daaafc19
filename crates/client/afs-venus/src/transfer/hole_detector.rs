//! Hole detector: separates long runs of zeros from data in fetched bytes, so that they take no space in the cache.

use std::ops::Range;

use bytes::Bytes;

/// Shortest run of zeros that becomes a hole.
const HOLE_MIN: u64 = 64 << 10;
const ZEROS: &[u8] = &[0; HOLE_MIN as usize];

/// An update of the cache file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum FileUpdate {
    /// Write these bytes at this position.
    Write(u64, Bytes),
    /// Make this range zeros without space.
    Hole(Range<u64>),
}

/// Detector of holes in bytes that arrive in order. Zeros at the end are held back.
pub(super) struct HoleDetector {
    /// Position of the next bytes.
    at: u64,
    /// Start of the zeros that are held back.
    zeros_from: u64,
}

impl HoleDetector {
    pub fn at(at: u64) -> Self {
        HoleDetector { at, zeros_from: at }
    }

    /// Adds fetched bytes; returns the resulting updates.
    pub fn take(&mut self, parts: Vec<Bytes>) -> Vec<FileUpdate> {
        let mut updates = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            let at = self.at;
            self.at += part.len() as u64;
            if !part.iter().all(|byte| *byte == 0) {
                updates.extend(held_back(self.zeros_from..at));
                updates.push(FileUpdate::Write(at, part));
                self.zeros_from = self.at;
            }
        }
        updates
    }

    /// Ends the input; returns the update for the zeros that were held back.
    pub fn end(&mut self) -> Option<FileUpdate> {
        held_back(std::mem::replace(&mut self.zeros_from, self.at)..self.at)
    }
}

fn held_back(zeros: Range<u64>) -> Option<FileUpdate> {
    match zeros.end - zeros.start {
        0 => None,
        HOLE_MIN.. => Some(FileUpdate::Hole(zeros)),
        few => Some(FileUpdate::Write(zeros.start, Bytes::from_static(ZEROS.get(..few as usize)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the result with the bytes that were sent, over files with runs of zeros and data of any length.
    #[test]
    fn all_bytes_are_written_and_long_zeros_are_holes() {
        let mut seed = 3u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for round in 0..100 {
            let mut sent: Vec<u8> = Vec::new();
            for run in 0..random(6) {
                let len = random(if run % 2 == 0 { 3 } else { 300 }) << 10;
                sent.extend(vec![(run % 2) as u8 * (round % 2) as u8; len as usize + random(9) as usize]);
            }
            let (mut file, mut holes) = (vec![7; sent.len()], 0);
            let mut detector = HoleDetector::at(1000);
            let mut updates = Vec::new();
            let parts: Vec<Bytes> =
                sent.chunks(1 + random(5000) as usize).map(Bytes::copy_from_slice).collect();
            parts.chunks(7).for_each(|parts| updates.extend(detector.take(parts.to_vec())));
            updates.extend(detector.end());
            for update in updates {
                match update {
                    FileUpdate::Write(at, bytes) => {
                        file[at as usize - 1000..][..bytes.len()].copy_from_slice(&bytes);
                    }
                    FileUpdate::Hole(hole) => {
                        assert!(hole.end - hole.start >= HOLE_MIN);
                        holes += hole.end - hole.start;
                        file[hole.start as usize - 1000..hole.end as usize - 1000].fill(0);
                    }
                }
            }
            assert!(file == sent, "round {round}");
            let is_hole = round % 2 == 0 && sent.len() as u64 >= HOLE_MIN;
            assert!(!is_hole || holes == sent.len() as u64, "round {round}: {holes} of {}", sent.len());
        }
    }
}
