//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod capabilities;
mod chunks;
mod false_drives;
mod fuzzing;
mod hostile;
mod kit;
mod refusals;
mod streams;
mod tls;
mod vectors;
mod volume_streams;
mod waiting;
