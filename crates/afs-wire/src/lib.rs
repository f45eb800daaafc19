//! The AFS-3 wire: what travels between cache managers, file servers and location servers, as Rust types.
//!
//! The crate knows formats and nothing else: no sockets, no clock, no threads, no storage. Every decoder is bounded
//! and answers [`xdr::DecodeError`] to anything it does not like; none of them panics, loops or allocates more than
//! a small multiple of its input.
//!
//! | Module | Holds |
//! | --- | --- |
//! | [`ids`] | identifiers, rights, times, validated names |
//! | [`xdr`] | encoding and bounded decoding |
//! | [`rpc`] | what a remote call is: service, opcode, arguments, reply |
//! | [`error`] | abort codes, their names, and their meaning as Linux error numbers |
//! | [`fs`], [`cb`], [`vl`], [`vol`], [`pt`] | every call of the file, callback, location, volume and protection services |
//! | [`login`] | every call of our own login service |
//! | [`operations`] | every call of our own journal of operations |
//! | [`bos`] | every call of the overseer service |
//! | [`dir`] | directory pages |
//! | [`dump`] | the dump stream |
//! | [`acl`], [`mountpoint`], [`volname`] | the small texts inside the protocol |
//!
//! The facts are in `docs/protocol/`; code cites the heading it obeys.

#[macro_use]
mod macros;

pub mod acl;
pub mod bos;
pub mod cb;
pub mod dir;
pub mod dump;
pub mod error;
pub mod fs;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod ids;
pub mod login;
pub mod mountpoint;
pub mod operations;
pub mod pt;
pub mod rpc;
pub mod vl;
pub mod vol;
pub mod volname;
pub mod xdr;
