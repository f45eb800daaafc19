//! Reading the databases of an OpenAFS cell, `vldb.DB0` and `prdb.DB0` (docs/protocol operations.md "3.5 File format",
//! "4. vldb.DB0" and "5. prdb.DB0"), and writing what they say into ours.
//!
//! Reading is pure: bytes come through a [`Source`], in bounded pieces. Every entry is looked for in two ways, along the
//! file and along the hash chains, so that one damaged pointer loses nothing. What was found on the way is told as
//! [`Finding`]s; whoever imports decides whether to go on where something is damaged. Memory is about the size of
//! the file, which ubik keeps below 2 GiB.
//!
//! Writing ([`location::Part`], [`protection::Part`]) is some large transactions. A mark in the database says that not
//! all of them are there yet.

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

/// What became of one part of an import, or would become of it.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Merged {
    /// Entries that are new.
    pub added: u64,
    /// Entries that were there already, and stay as they are.
    pub there: u64,
    /// Entries of the database that made room for one of the file.
    pub replaced: u64,
    /// Servers that are new.
    pub servers: u64,
    /// Memberships that are new.
    pub memberships: u64,
    /// What contradicts the database. Nothing is written when there is any. At most [`FINDINGS_MAX`].
    pub conflicts: Vec<String>,
}

impl Merged {
    pub(crate) fn conflict(&mut self, text: String) {
        if self.conflicts.len() < FINDINGS_MAX {
            self.conflicts.push(text);
        }
    }

    /// Adds what became of another part.
    pub fn add(&mut self, other: Merged) {
        self.added += other.added;
        self.there += other.there;
        self.replaced += other.replaced;
        self.servers += other.servers;
        self.memberships += other.memberships;
        other.conflicts.into_iter().for_each(|text| self.conflict(text));
    }
}

/// Whether an import into these databases was begun and not finished: some of what it was to bring may be missing.
///
/// # Errors
/// The store cannot be read.
pub fn is_unfinished(rows: &(impl Rows + ?Sized)) -> Result<bool, LocationError> {
    let of_people = rows.get(crate::protection::rows::META, MARK)?.is_some();
    Ok(of_people || location::is_unfinished(rows)?)
}

/// Key of the mark in a database that an import is not finished.
pub(crate) const MARK: &[u8] = b"import";
