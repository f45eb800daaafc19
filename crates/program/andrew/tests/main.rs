//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod administrators;
mod cells_of_a_user;
mod command_line;
mod core_files;
mod daemons;
mod home;
mod login;

/// What a home of the tests runs.
const PROGRAM: &str = env!("CARGO_BIN_EXE_andrew");
