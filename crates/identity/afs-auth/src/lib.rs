//! Authentication of Rx connections: rxkad and rxgk as security classes, tokens, the cell's keys and their files.
//!
//! Time and randomness come through [`Env`](afs_rpc::Env); nothing here reads a file.

pub mod crypto;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod keys;
pub mod names;
pub mod rxgk;
pub mod rxkad;
mod secret;
mod token;

pub use secret::Secret;
pub use token::{NotAToken, Token};
