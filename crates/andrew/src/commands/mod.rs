//! The commands, one file each.

pub mod bench;
mod bench_load;
pub mod completions;
pub mod down;
pub mod fs;
pub mod key;
pub mod man;
pub mod mount;
pub mod pts;
pub mod serve;
mod serve_options;
pub mod status;
pub mod umount;
pub mod up;
pub mod vos;
pub mod words;
