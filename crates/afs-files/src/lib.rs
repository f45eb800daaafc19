//! Files on disk: the product's own, closed to other users; small ones, replaced atomically, with a version and a checksum where the program alone writes them, and, if they hold secrets,
//! readable by their owner alone.

mod directory;
mod durable;
pub mod own;
pub mod secret_file;
mod versioned_file;

pub use directory::make_directory;
pub use durable::write_durably;
pub use versioned_file::{Syntax, Versioned, VersionedFileError};
