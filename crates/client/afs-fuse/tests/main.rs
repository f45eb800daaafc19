//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod bypass;
mod growing;
mod held_files;
mod holes;
mod kit;
mod many_users;
mod no_attributes;
mod own_times;
mod owners;
mod same_names;
mod shared_directory;
