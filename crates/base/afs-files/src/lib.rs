//! Small files on disk: replaced atomically, with a version and a checksum where the program alone writes them, and, if they hold secrets,
//! readable by their owner alone.

mod durable;
pub mod secret_file;
mod versioned_file;

pub use durable::write_durably;
pub use versioned_file::{Syntax, Versioned, VersionedFileError};
