//! The `andrew` program as a library: the command line, and the wiring of servers and clients that
//! the whole-cell tests use as well.
//!
//! One file a command in [`commands`]; what opens stores and sockets is in [`cell`]; the way a
//! command reaches a running cell as its owner is in [`control`].

pub mod cell;
pub mod cli;
pub mod commands;
pub mod control;
mod detach;
pub mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod life;
pub mod mounts;
pub mod open_files;
pub mod output;
pub mod running_cells;
pub mod size;
pub mod state;
mod sys;
pub mod tokens;
mod units;

pub use cli::main;
