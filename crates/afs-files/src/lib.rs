//! Small files on disk: replaced atomically, and, if they hold secrets, readable by their owner alone.

mod directory;
mod durable;
pub mod secret_file;

pub use directory::make_directory;
pub use durable::write_durably;
