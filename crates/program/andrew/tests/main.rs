//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod administrators;
mod bench_bulk;
mod bench_load;
mod cells_of_a_user;
mod command_line;
mod core_files;
mod daemons;
mod home;
mod lab;
mod login;
