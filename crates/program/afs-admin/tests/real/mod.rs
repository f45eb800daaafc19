//! Operations on real file servers in a simulated world: snapshots that move with their volume, whatever
//! crashes meanwhile; moves from partition to partition; a check of every kind of fault.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

pub mod cell;
mod check;
pub mod content;
pub mod dumps;
mod fencing;
mod paths;
mod readers;
mod restores;
mod routes;
mod schedule;
mod snapshots;
