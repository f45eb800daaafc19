//! `vldb.DB0`: which servers hold which volumes (docs/protocol operations.md "4. vldb.DB0").

mod chains;
mod header;
mod read;
mod record;
mod servers;
mod write;

#[cfg(test)]
mod tests;

pub use read::{ReadLocation, read};
pub use write::Part;

pub(crate) use write::{check, is_unfinished, write};

use crate::Answer;
use crate::import::Merged;

/// A location database that takes what was read.
pub trait ImportLocations: Send + Sync {
    /// Writes a part of an import, or with `dry` only says what would become of it. Nothing of it is written when
    /// there are conflicts.
    fn import(&self, part: Part, dry: bool) -> Answer<'_, Merged>;

    /// Most entries of one part: what fits into one transaction of this store many times over.
    fn part_max(&self) -> usize;

    /// Whether an import was begun and not finished: some of its entries may be missing.
    fn import_unfinished(&self) -> Answer<'_, bool>;
}
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::name_bucket;
