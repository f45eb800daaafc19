//! The `andrew` program as a library: arguments, output, messages and exit statuses.
//!
//! [`commands`] has one file for each command; the operations themselves are in the other crates.

pub mod cli;
pub mod commands;
pub mod daemon;
mod detach;
pub mod error;
mod host_names;
mod log;
pub mod open_files;
pub mod output;
mod plain;
pub mod running_cells;
pub mod size;
pub mod sys;
mod units;

pub use cli::main;
