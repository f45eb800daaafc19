//! The few calls to the system that Rust's library does not offer.

pub(crate) mod accounts;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod socket;
