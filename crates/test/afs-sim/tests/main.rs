//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod disk;
mod listening_and_sleep;
mod rx_world;
mod store_crash;
#[path = "../../../base/afs-env/tests/stream_rules/mod.rs"]
mod stream_rules;
mod streams;
mod world;
