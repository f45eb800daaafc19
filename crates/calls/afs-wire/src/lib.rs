//! Wire formats of AFS-3 as Rust types: the calls between cache managers, file servers and database servers.
//!
//! The crate has formats only: no sockets, no clock, no threads, no storage. Every decoder is bounded and returns
//! [`xdr::DecodeError`] for invalid input; none of them panics, loops or allocates more than a small multiple of its
//! input.
//!
//! | Module | Holds |
//! | --- | --- |
//! | [`ids`] | identifiers, rights, times, validated names |
//! | [`xdr`] | encoding and bounded decoding |
//! | [`rpc`] | remote calls: service, opcode, arguments, reply |
//! | [`error`] | abort codes, their names, and their meaning as Linux error numbers |
//! | [`fs`], [`cb`], [`vl`], [`vol`], [`pt`] | every call of the file, callback, location, volume and protection services |
//! | [`login`] | every call of Andrew's login service |
//! | [`operations`] | every call of Andrew's journal of operations |
//! | [`bos`] | every call of the overseer service |
//! | [`dir`] | directory pages |
//! | [`dump`] | the dump stream |
//! | [`acl`], [`mountpoint`], [`volname`] | access lists, mount points and suffixes of volume names |
//!
//! The facts are in `docs/protocol/`; code cites the heading it implements.

#[macro_use]
mod macros;

pub mod acl;
pub mod bos;
pub mod cb;
#[cfg(feature = "fuzzing")]
mod decoders;
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
