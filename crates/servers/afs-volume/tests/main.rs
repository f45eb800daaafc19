//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod bucket;
mod clones;
mod clones_random;
mod copies;
mod crash;
mod cuts;
mod data;
mod depths;
mod drives;
mod dumps;
mod format_2;
mod full_disk;
mod fuzzing;
mod holes;
mod lent;
mod lists;
mod placement;
mod placement_random;
mod random;
mod relocation;
mod scattered;
mod semantics;
mod series;
mod set_aside;
mod sizes;
mod support;
