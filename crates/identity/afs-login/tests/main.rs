//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod cache_key;
mod cell;
mod fuzzing;
mod groups;
mod hostile;
mod login;
mod middle;
mod recorded;
mod revoke;
