//! Files with known contents, to write and compare.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// Contents that follow from a seed; each block differs from all others.
#[derive(Clone, Copy, Debug)]
pub struct Pattern(pub u64);

impl Pattern {
    /// The contents of block number `block`, of 64 KiB.
    #[must_use]
    pub fn block(self, block: u64) -> Vec<u8> {
        let mut state = self.0 ^ block.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut out = Vec::with_capacity(BLOCK);
        while out.len() < BLOCK {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            out.extend_from_slice(&state.to_le_bytes());
        }
        out
    }

    /// Writes `blocks` blocks to a new file and closes it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn write(self, path: &Path, blocks: u64) -> io::Result<()> {
        let mut file = File::create(path)?;
        (0..blocks).try_for_each(|block| file.write_all(&self.block(block)))
    }

    /// Compares a file with these contents; the inner error is the first difference.
    ///
    /// # Errors
    /// Those of the file.
    pub fn check(self, path: &Path, blocks: u64) -> io::Result<Result<(), String>> {
        let mut file = File::open(path)?;
        let mut have = vec![0; BLOCK];
        for block in 0..blocks {
            if let Err(error) = file.read_exact(&mut have) {
                return Ok(Err(format!("block {block}: {error}")));
            }
            if have != self.block(block) {
                return Ok(Err(format!("block {block} differs")));
            }
        }
        let more = file.read(&mut have)?;
        Ok(if more == 0 { Ok(()) } else { Err(format!("{more} bytes too many")) })
    }
}

/// Bytes of one block.
pub const BLOCK: usize = 64 << 10;

/// The names in a folder, sorted.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
