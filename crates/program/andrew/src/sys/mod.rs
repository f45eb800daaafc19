//! System calls that Rust's library does not offer.

pub(crate) mod signals;
