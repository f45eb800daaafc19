//! Findings: irregularities in an imported file.

use std::fmt;

use super::image::UBIK_HEADER_LEN;

/// Most findings that are kept; further ones are only counted.
pub const FINDINGS_MAX: usize = 1000;

/// An irregularity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Position in the file.
    pub offset: u64,
    /// Whether data is lost. Otherwise it is a difference that the import corrects.
    pub damage: bool,
    /// Description, with its consequence.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.text)
    }
}

/// Findings in the order in which they were made.
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

    /// Number of findings with loss of data.
    pub fn damages(&self) -> u64 {
        self.damages
    }

    /// Number of findings that the import corrects.
    pub fn differences(&self) -> u64 {
        self.differences
    }

    /// Adds a loss of the data at this address of the database.
    pub(super) fn damage(&mut self, address: u32, text: impl Into<String>) {
        self.damages += 1;
        self.keep(true, address, text.into());
    }

    /// Adds an irregularity that the import corrects.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_beyond_the_bound_are_counted() {
        let mut findings = Findings::default();
        for n in 0..2 * FINDINGS_MAX as u32 {
            findings.damage(n, "is damaged");
            findings.difference(n, "differs");
        }
        assert_eq!(findings.kept().len(), FINDINGS_MAX);
        assert_eq!(
            (findings.damages(), findings.differences()),
            (2 * FINDINGS_MAX as u64, 2 * FINDINGS_MAX as u64)
        );
    }
}
