//! Import of the databases of an OpenAFS cell, `vldb.DB0` and `prdb.DB0` (docs/protocol operations.md "3.5
//! File format", "4. vldb.DB0" and "5. prdb.DB0").
//!
//! Reading has no side effects: bytes come through a [`Source`], in bounded pieces. Every entry is looked for
//! in two ways, by a sequential scan and along the hash chains, so that one damaged pointer loses nothing.
//! Irregularities are reported as [`Finding`]s; the caller decides whether to continue with a damaged file.
//! Memory is about the size of the file, which ubik keeps below 2 GiB.
//!
//! Writing ([`location::Part`], [`protection::Part`]) takes some large transactions. A mark in the database
//! says that not all of them are done yet.

mod finding;
mod image;
pub mod location;
pub mod protection;
mod redo;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod samples;
mod source;

pub use finding::{FINDINGS_MAX, Finding, Findings};
pub use image::UbikVersion;
pub use source::{ImportError, Source};

use crate::{LocationError, Rows};

/// Effect of one part of an import.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Merged {
    /// Number of new entries.
    pub added: u64,
    /// Number of entries that existed already, and stay unchanged.
    pub there: u64,
    /// Number of entries of the database that were replaced by one of the file.
    pub replaced: u64,
    /// Number of new servers.
    pub servers: u64,
    /// Number of new memberships.
    pub memberships: u64,
    /// Contradictions between file and database. Nothing is written if there are any. At most
    /// [`FINDINGS_MAX`].
    pub conflicts: Vec<String>,
}

impl Merged {
    pub(crate) fn conflict(&mut self, text: String) {
        if self.conflicts.len() < FINDINGS_MAX {
            self.conflicts.push(text);
        }
    }

    /// Adds the effect of another part.
    pub fn add(&mut self, other: Merged) {
        self.added += other.added;
        self.there += other.there;
        self.replaced += other.replaced;
        self.servers += other.servers;
        self.memberships += other.memberships;
        other.conflicts.into_iter().for_each(|text| self.conflict(text));
    }
}

/// Whether an import into these databases was started and not finished: some of its data may be missing.
///
/// # Errors
/// The store cannot be read.
pub fn is_unfinished(rows: &(impl Rows + ?Sized)) -> Result<bool, LocationError> {
    let of_people = rows.get(crate::protection::rows::META, MARK)?.is_some();
    Ok(of_people || location::is_unfinished(rows)?)
}

/// Key of the mark of an unfinished import.
pub(crate) const MARK: &[u8] = b"import";
