//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod ciphers;
#[path = "../../../calls/afs-rpc/tests/fake/mod.rs"]
mod fake;
mod gate;
mod rxdebug;
mod sockets;
#[path = "../../../base/afs-env/tests/stream_rules/mod.rs"]
mod stream_rules;
mod streams;
mod woken;
