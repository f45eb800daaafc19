//! Who is who on an Rx connection: rxkad and rxgk as security classes, tokens, the cell's keys and their files.
//!
//! Nothing here reads a clock, a file or a random generator: all three are handed in.

pub mod crypto;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod keys;
pub mod names;
pub mod rxgk;
pub mod rxkad;
mod secret;
mod token;

use std::sync::Arc;

use afs_rpc::UnixTime;

pub use secret::Secret;
pub use token::{NotAToken, Token};

/// The wall clock, handed in. May jump.
pub type Clock = Arc<dyn Fn() -> UnixTime + Send + Sync>;

/// A source of randomness good enough for keys, handed in.
pub type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;
