//! System calls that Rust's library does not offer.

pub mod signals;
