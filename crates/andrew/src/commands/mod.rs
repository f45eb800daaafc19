//! The commands, one file for each.

mod auth_options;
pub mod bench;
mod bench_load;
pub mod completions;
pub mod down;
mod duration_text;
pub mod fs;
pub mod import;
pub mod key;
pub mod login;
pub mod logout;
pub mod man;
pub mod mount;
pub mod openafs_options;
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
