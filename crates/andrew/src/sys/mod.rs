//! The few calls to the system that Rust's library does not offer.

pub(crate) mod signals;
