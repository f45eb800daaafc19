//! Import of `prdb.DB0`: users, groups and memberships (docs/protocol operations.md "5. prdb.DB0").

mod chains;
mod header;
mod members;
mod nesting;
mod read;
mod slot;

#[cfg(test)]
mod tests;

pub use crate::protection::import::Part;
pub use read::{ReadProtection, read};

use crate::import::Merged;
use crate::protection::Pending;

/// A protection database that supports imports.
pub trait ImportPeople: Send + Sync {
    /// Writes a part of an import, or with `dry` only reports the effect. Nothing is written if there are
    /// conflicts.
    fn import(&self, part: Part, dry: bool) -> Pending<'_, Merged>;

    /// Most entries and memberships of one part: far below the capacity of one transaction of this store.
    fn part_max(&self) -> usize;

    /// Whether an import was started and not finished: some of its entries or memberships may be missing.
    fn import_unfinished(&self) -> Pending<'_, bool>;
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use slot::name_bucket;
