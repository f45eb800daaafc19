//! The servers of a cell over its stores: file service, location service, volume service.

pub mod access;
mod bootstrap;
pub mod callbacks;
pub mod clients;
pub mod hosts;
pub mod location;
pub mod locks;
mod ops;
mod partitions;
mod server;
mod statistics;
pub mod subject;
mod volume_states;
mod volumes;

pub use bootstrap::{BootstrapError, CellSpec, FirstVolumes, ROOT_AFS, ROOT_CELL, bootstrap};
pub use location::{LocationServer, VoteServer};
pub use partitions::Partitions;
pub use server::{FileServer, FileServerConfig, FileServerLimits};
pub use statistics::{Statistics, StatisticsNow};
pub use subject::{ADMIN, BuiltInNames, NameService, Subject};
pub use volume_states::{VolumeState, VolumeStates};
pub use volumes::VolumeServer;
