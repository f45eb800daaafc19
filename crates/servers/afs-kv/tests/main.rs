//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod basics;
mod crash;
mod full;
mod fuzzing;
mod lost_files;
mod parts;
mod planted;
mod salvage;
mod threads;
mod upgrade;
mod verify;
