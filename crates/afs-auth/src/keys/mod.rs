//! The cell's keys and the files they are kept in: `docs/protocol/rxkad.md` "11. Key files".
//!
//! Whoever has one of these keys is the cell: he can say that he is anybody. Nothing here opens a file; bytes come
//! in and go out, so that whoever owns the file can see to its mode (0600) and to writing it at once.

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
