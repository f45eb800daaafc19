//! Operations on volumes over many servers: create, move, copy, release, dump, remove, as `vos` has them.
//!
//! [`Admin`] calls the location and volume servers of a cell, OpenAFS's and ours alike. Each operation that
//! changes more than one thing is a machine of named steps: a step is written into a [`Journal`] before its
//! effect, so an interrupted operation can be completed or undone from every step, by the same program, by
//! [`Admin::resume`] or by a [`Resumer`] in the servers. One write to the location database is the turning
//! point of an operation: before it everything is undone, after it everything is completed.
//!
//! The sequences of calls are those of `docs/protocol/volserver.md` "8. RPC sequences of the tools"; where
//! they differ, the operation says why. Nothing here opens a socket or reads a clock.

mod admin;
mod affected;
mod calls;
mod cell;
mod error;
mod failures;
mod fencing;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod group;
pub mod journal;
mod lost_snapshots;
mod ops;
mod plan;
mod progress;
mod resumer;
pub mod scheduled;
mod server_partition;
mod steps;
mod wire_numbers;

pub use admin::{Admin, PathUse};
pub use cell::Cell;
pub use error::{AdminError, AdminResult, Cause};
pub use fencing::{Fencing, HeldVolume, HeldVolumes};
pub use group::Group;
pub use journal::{CellJournal, Journal};
pub use ops::*;
pub use plan::steps_of;
pub use progress::{LogProgress, Progress};
pub use resumer::Resumer;
pub use server_partition::ServerPartition;
