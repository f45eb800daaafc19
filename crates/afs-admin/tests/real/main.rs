//! Operations on real file servers in a simulated world: snapshots that go with their volume, whatever dies meanwhile; moves from
//! partition to partition; a check against every kind of damage.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

mod cell;
mod check;
mod content;
mod restores;
mod schedule;
mod snapshots;
