//! The commands, one file each.

mod as_whom;
pub mod bench;
mod bench_load;
pub mod completions;
pub mod down;
pub mod fs;
pub mod import;
pub mod key;
pub mod login;
pub mod logout;
pub mod man;
pub mod mount;
pub mod passwd;
pub mod pts;
pub mod run_with_token;
pub mod serve;
mod serve_options;
pub mod server;
mod server_order;
pub mod ssh_keys;
pub mod status;
pub mod tokens;
pub mod umount;
pub mod up;
pub mod vos;
pub mod words;
mod words_of_time;
