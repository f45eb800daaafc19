//! What a user holds to prove who he is in a cell.

/// A token of a cell: opaque to its holder but for the key in it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Token {}
