//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod andrew;
mod bench_andrew;
mod bench_bulk;
mod bench_load;
mod bulk;
#[path = "../../../program/andrew/tests/home/mod.rs"]
mod home;
mod lab;

/// What a home of the tests runs.
const PROGRAM: &str = env!("CARGO_BIN_EXE_andrew-lab");
