//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod capabilities;
mod chunks;
mod conversations;
mod false_drives;
mod fuzzing;
mod hostile;
mod kit;
mod refusals;
mod sessions;
mod streams;
mod tls;
mod vectors;
mod volume_streams;
mod waiting;
