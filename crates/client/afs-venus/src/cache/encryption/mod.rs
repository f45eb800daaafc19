//! Encryption of a cache with a key of its user's login: of files by sectors, of records as wholes.
//!
//! ```text
//! the user's key ── HKDF, salt of the cache ──┬── check value in the file `key`
//!                                             ├── key of each file, by its number   (`sectors`)
//!                                             └── keys of the records               (`sealing`)
//! ```

mod sealing;
mod secret;
mod sectors;

pub(super) use sealing::{RecordKind, SEALED, Sealing};
pub use secret::CacheSecret;
pub(super) use secret::{CHECK_LEN, CacheCipher, SALT_LEN};
pub(super) use sectors::{SECTOR, SectorCipher};
