//! Where volumes are: cells, groups of volumes, their sites, and the servers there.

mod cell;
mod group;
mod server;
mod volume;

pub(crate) use cell::{Cell, address_of};
pub(crate) use group::{Group, ServerName};
pub(crate) use server::{Address, Server, ServerTable};
pub(crate) use volume::{Entered, Volume, VolumeTable};
