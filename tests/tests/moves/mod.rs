//! Volumes moved and released between Andrew servers, over real sockets: under writers, and with every process that
//! takes part killed at every step.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

mod consistency;
mod killed;
mod released;
mod setup;
mod under_writers;
mod writer;
