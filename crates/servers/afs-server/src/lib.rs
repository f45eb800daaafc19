//! The services of a cell over its stores: file, location, protection and volume service, the journal of
//! operations, and the overseer service that reports on them.

pub mod access;
pub mod audit;
mod bootstrap;
pub mod bos;
mod call_context;
pub mod callbacks;
pub mod clients;
mod data_path;
mod file;
mod flow;
mod guard;
pub mod hosts;
pub mod journal;
mod kept_locks;
mod leases;
pub mod location;
pub mod locks;
mod partition_health;
mod partitions;
pub mod policy;
pub mod protection;
pub mod remote;
pub mod scrub;
pub mod subject;
mod volume_states;
mod volumes;

// Lets unit tests include the support code of the integration tests.
#[cfg(test)]
extern crate self as afs_server;
#[cfg(test)]
#[path = "../tests/rig/mod.rs"]
mod rig;

pub use audit::{Audit, AuditOptions, AuditSink};
pub use bootstrap::{BootstrapError, CellSpec, FirstVolumes, ROOT_AFS, ROOT_CELL, bootstrap};
pub use bos::{BosServer, KeyKeeper, Overseen, Role};
pub use data_path::DataPathOptions;
pub use file::{FileServer, FileServerConfig, FileServerLimits, Statistics, StatisticsNow};
pub use guard::Guard;
pub use journal::JournalServer;
pub use location::{LocationServer, VoteServer};
pub use partition_health::PartitionState;
pub use partitions::Partitions;
pub use policy::{Policy, Requirement, SharedPolicy};
pub use protection::{ProtectionNames, ProtectionOptions, ProtectionServer};
pub use subject::{ADMIN, BuiltInNames, NameService, Subject};
pub use volume_states::{VolumeState, VolumeStates};
pub use volumes::{OwnSecurity, ReadWriteVolume, VolumeServer};
