//! The seven damages that a file is given.

use std::fs;
use std::path::Path;

/// A text that is in the rows of the partition's index, and one in those of the databases: a bit of it is flipped there.
pub const MARKS: [&[u8]; 2] = [b"a text that is in a row", b"witness"];

/// Bytes of a log before its records.
const LOG_HEAD: usize = 8192;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Damage {
    Missing,
    Empty,
    Zeroed,
    Cut,
    Flipped,
    Older,
    Unreadable,
}

impl Damage {
    pub const ALL: [Self; 7] =
        [Self::Missing, Self::Empty, Self::Zeroed, Self::Cut, Self::Flipped, Self::Older, Self::Unreadable];

    /// The damage of a column of the table.
    pub fn parse(word: &str) -> Option<Self> {
        let words = ["missing", "empty", "zeroed", "cut", "flipped bit", "older", "unreadable"];
        words.iter().position(|known| *known == word).map(|at| Self::ALL[at])
    }

    /// Damages a file. `older`: the same file at an earlier stop, if it was there.
    pub fn apply(self, path: &Path, older: Option<&Path>) {
        let bytes = fs::read(path).unwrap();
        match self {
            Self::Missing => fs::remove_file(path).unwrap(),
            Self::Empty => write(path, &[]),
            Self::Zeroed => write(path, &vec![0; bytes.len()]),
            Self::Cut => write(path, &bytes[..half(path, &bytes)]),
            Self::Flipped => write(path, &flipped(path, bytes)),
            Self::Older => write(path, &older.map_or(bytes, |older| fs::read(older).unwrap())),
            Self::Unreadable => {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            }
        }
    }
}

/// In place: the file keeps its mode, and its other names.
fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
}

/// Where the second half begins; of a log that of its records.
fn half(path: &Path, bytes: &[u8]) -> usize {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    match ["log.a", "log.b"].iter().any(|log| path.ends_with(log)) {
        true => LOG_HEAD.min(used) + used.saturating_sub(LOG_HEAD) / 2,
        false => bytes.len() / 2,
    }
}

/// With a bit of the text flipped, in every page of an index that has it, or once in a log; else in the middle of what is not zero.
fn flipped(path: &Path, mut bytes: Vec<u8>) -> Vec<u8> {
    let mut places: Vec<usize> = MARKS.iter().flat_map(|mark| all_of(mark, &bytes)).collect();
    if places.is_empty() || path.ends_with("log.turn") {
        let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
        places = used.get(used.len() / 2).copied().into_iter().collect();
    } else if !path.ends_with("index") {
        places.truncate(1);
    }
    places.into_iter().for_each(|at| bytes[at] ^= 0x10);
    bytes
}

fn all_of<'a>(mark: &'a [u8], bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let found = bytes.windows(mark.len()).enumerate().filter(move |(_, part)| *part == mark);
    found.map(|(at, _)| at)
}
