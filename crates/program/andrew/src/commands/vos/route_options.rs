//! Options of `andrew vos` that select the cell and the journal.

use crate::commands::auth_options::AuthOptions;
use crate::host_names;
use afs_cell::tokens::CellLocation;
use afs_wire::ids::CellName;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Options that select the cell and the journal.
#[derive(clap::Args, Debug, Default)]
pub struct RouteOptions {
    /// Location servers of the cell, over the network [default: the cell of the state directory, as its owner, or else
    /// the one that is mounted here]
    #[arg(long, value_name = "HOST", value_parser = host_names::address, value_delimiter = ',', global = true)]
    pub(super) servers: Vec<Ipv4Addr>,
    /// State directory of the cell that runs here [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR", global = true, conflicts_with = "servers")]
    pub(super) state: Option<PathBuf>,
    /// Port of the cell's file servers, with --servers; the others follow from it
    #[arg(long, value_name = "PORT", default_value_t = 7000, global = true)]
    pub(super) base_port: u16,
    /// Name of the cell, with --servers, if the token was not obtained from these servers
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) cell: Option<CellName>,
    #[command(flatten)]
    pub(super) auth_options: AuthOptions,
    /// Keep the journal of operations in files of this directory, instead of the cell's journal
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) journal: Option<PathBuf>,
    /// Write a line for every step, instead of a progress bar
    #[arg(long, global = true)]
    pub(super) verbose: bool,
}

impl RouteOptions {
    /// Options for the cell that runs on a state directory.
    pub(in crate::commands) fn of_state(state: &Path) -> Self {
        RouteOptions { state: Some(state.to_owned()), base_port: 7000, ..RouteOptions::default() }
    }

    /// Options for the servers of one cell, with the user's token of it if there is one.
    pub(in crate::commands) fn of(place: &CellLocation) -> Self {
        let (servers, base_port, cell) = (place.servers.clone(), place.base_port, Some(place.cell.clone()));
        RouteOptions { servers, base_port, cell, ..RouteOptions::default() }
    }
}
