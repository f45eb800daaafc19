//! What is odd in a file that is imported.

use std::fmt;

use super::image::UBIK_HEADER_LEN;

/// Most findings that are kept; the rest is only counted.
pub const FINDINGS_MAX: usize = 1000;

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Where in the file.
    pub offset: u64,
    /// Whether something is lost by it. Otherwise it is a difference that importing mends.
    pub damage: bool,
    /// What it is, and what becomes of it.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.text)
    }
}

/// Findings in the order they were met.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Findings {
    kept: Vec<Finding>,
    damages: u64,
    differences: u64,
}

impl Findings {
    /// The first [`FINDINGS_MAX`].
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// How many there are by which something is lost.
    pub fn damages(&self) -> u64 {
        self.damages
    }

    /// How many there are that importing mends.
    pub fn differences(&self) -> u64 {
        self.differences
    }

    /// Something is lost: what is at this address of the database.
    pub(super) fn damage(&mut self, address: u32, text: impl Into<String>) {
        self.damages += 1;
        self.keep(true, address, text.into());
    }

    /// Something is not as it should be, and will be.
    pub(super) fn difference(&mut self, address: u32, text: impl Into<String>) {
        self.differences += 1;
        self.keep(false, address, text.into());
    }

    fn keep(&mut self, damage: bool, address: u32, text: String) {
        if self.kept.len() < FINDINGS_MAX {
            self.kept.push(Finding { offset: UBIK_HEADER_LEN + u64::from(address), damage, text });
        }
    }
}
