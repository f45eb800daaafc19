//! Experiments that can be run on any directory, an AFS mount or not.
//!
//! [`andrew`] is the five-phase Andrew benchmark of Howard et al., "Scale and Performance in a Distributed
//! File System" (ACM TOCS 6(1), 1988), section 2.3. [`bulk`] stores and fetches large files, as CITI TR 01-3 does
//! (section 7). [`load`] makes calls to a file server directly. The lab repeats what papers measured: [`catalogue`] tells how, [`clients`] runs many
//! clients, [`prototype`] is that of 1984, [`measure`] measures, [`layers`] those of the network, [`volumes`] operations on volumes, [`runs`] runs
//! experiments and keeps their results. `scripts/lab-report` puts them beside the papers' numbers, and computes what follows from those.
//!
//! This crate is an experiment driver: it uses the file system from outside, as a user's programs do. It
//! therefore reads the clock, starts threads and runs commands, which the crates of the file system itself
//! leave to their environment. Nothing of the file system depends on it.

pub mod andrew;
pub mod bulk;
pub mod catalogue;
pub mod clients;
mod close;
pub mod demands;
pub mod error;
pub mod layers;
pub mod load;
pub mod measure;
pub mod measured_costs;
pub mod prototype;
pub mod runs;
mod scratch;
pub mod sheet;
mod split_mix;
pub mod spread;
pub mod volumes;

pub use error::LabError;
pub use spread::Spread;
