//! Import of `vldb.DB0`, the location database (docs/protocol operations.md "4. vldb.DB0").

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

use crate::Pending;
use crate::import::Merged;

/// A location database that supports imports.
pub trait ImportLocations: Send + Sync {
    /// Writes a part of an import, or with `dry` only reports the effect. Nothing is written if there are
    /// conflicts.
    fn import(&self, part: Part, dry: bool) -> Pending<'_, Merged>;

    /// Most entries of one part: far below the capacity of one transaction of this store.
    fn part_max(&self) -> usize;

    /// Whether an import was started and not finished: some of its entries may be missing.
    fn import_unfinished(&self) -> Pending<'_, bool>;
}
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use record::name_bucket;
