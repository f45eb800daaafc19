//! Location of volumes: cells, volume groups, sites and servers.

mod cell;
mod choice;
mod errors;
mod group;
mod server;
mod table;
mod unknown_call;
mod volume;

pub(crate) use cell::{Cell, QueryEnv, volume_query};
pub(crate) use group::{Group, ServerName};
pub(crate) use server::{Address, Server, ServerTable};
pub(crate) use table::Location;
pub(crate) use volume::{Entered, KnownSnapshots, Volume, VolumeTable};

#[cfg(test)]
mod tests;
