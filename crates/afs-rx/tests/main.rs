//! The integration tests of this crate: one program, one module a subject.

mod address_validation;
mod addresses;
mod bulk;
mod captures;
mod client_rules;
mod faulty_network;
mod memory;
mod opening;
mod outages;
mod queries;
mod random_bytes;
mod sealing;
mod security;
mod server_rules;
mod support;
