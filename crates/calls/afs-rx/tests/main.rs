//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod address_validation;
mod addresses;
mod bulk;
mod captures;
mod client_rules;
mod connection_shares;
mod faulty_network;
mod losses;
mod memory;
mod opening;
mod outages;
mod path_sizes;
mod queries;
mod random_bytes;
mod restarts;
mod sealing;
mod security;
mod server_rules;
mod support;
