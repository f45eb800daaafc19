//! Location of volumes: cells, volume groups, sites and servers.

mod absence;
mod absent;
mod address;
mod cell;
mod cell_names;
mod choice;
mod errors;
mod finder;
mod group;
mod look_up_checks;
mod refused_tokens;
mod server;
mod server_clock;
mod server_table;
mod table;
mod unknown_call;
mod volume;

pub(crate) use absence::Absence;
pub(crate) use address::Address;
pub(crate) use cell::{Cell, LocationServer, QueryEnv, volume_query};
pub(crate) use cell_names::CellNames;
pub(crate) use finder::CellFinder;
pub(crate) use group::{Group, GroupSite, ServerName};
pub(crate) use server::Server;
pub(crate) use server_table::ServerTable;
pub(crate) use table::Location;
pub(crate) use volume::{Entered, KnownSnapshots, Volume, VolumeTable};

/// 240.0.0.0/4, which includes the broadcast address (RFC 1112, section 4; RFC 919, section 7).
pub(crate) fn is_reserved(ip: std::net::Ipv4Addr) -> bool {
    ip.octets()[0] >= 240
}

#[cfg(test)]
mod tests;
