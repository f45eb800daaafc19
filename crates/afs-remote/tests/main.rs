//! The integration tests of this crate: one program, one module a subject.

mod commanded;
mod direct;
mod keys;
mod kit;
mod staging;
mod strangers;
mod suite;
mod troubles;
