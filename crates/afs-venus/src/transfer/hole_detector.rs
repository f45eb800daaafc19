//! Telling holes from data in what arrives: zeros in a row need no room in the cache.

use std::ops::Range;

use bytes::Bytes;

/// Zeros in a row that are worth a hole.
const HOLE_MIN: u64 = 64 << 10;
const ZEROS: &[u8] = &[0; HOLE_MIN as usize];

/// What to do with the cache file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum FileUpdate {
    /// Write these bytes there.
    Write(u64, Bytes),
    /// Free the room of these bytes, which are zeros.
    Hole(Range<u64>),
}

/// Bytes that arrive in order. The last of them may be held back while they are zeros.
pub(super) struct HoleDetector {
    /// Where the next bytes go.
    at: u64,
    /// Where the zeros begin that were held back.
    zeros_from: u64,
}

impl HoleDetector {
    pub fn at(at: u64) -> Self {
        HoleDetector { at, zeros_from: at }
    }

    /// Takes in what came.
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

    /// All has come: what was held back.
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

    /// Held against the bytes that were sent, over files of zeros and data in runs of any length.
    #[test]
    fn whatever_arrives_is_there_and_long_zeros_are_holes() {
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
