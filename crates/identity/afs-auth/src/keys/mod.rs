//! The cell's keys and their file formats: `docs/protocol/rxkad.md` "11. Key files".
//!
//! A holder of one of these keys can impersonate every user and server of the cell. Nothing here opens a file; bytes
//! are passed in and out, so that the caller is responsible for the file's mode (0600) and for replacing it
//! atomically.

mod error;
mod file;
mod file_ext;
mod generate;
mod key;
mod keytab;
mod ring;
mod shared;

pub use error::KeyError;
pub use generate::generate;
pub use key::{CellKey, KeyKind};
pub use ring::KeyRing;
pub use shared::SharedKeys;
