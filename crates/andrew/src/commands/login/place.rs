//! Which cell, and where its login service is.

use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_cell::state::StateDir;
use afs_cell::tokens::{KeptToken, TokenStore, cell_places};
use afs_login::Grant;
use afs_wire::ids::CellName;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Which cell a command means.
#[derive(clap::Args, Clone, Debug)]
pub(in crate::commands) struct PlaceOptions {
    /// Name of the cell [default: the one that runs here, is mounted here, or that you logged in to]
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) cell: Option<CellName>,
    /// Database servers of the cell, if they are not known on this machine
    #[arg(long, value_name = "IP", value_delimiter = ',', requires = "cell")]
    servers: Vec<Ipv4Addr>,
    /// Port of the cell's file servers, with --servers; the others follow from it
    #[arg(long, value_name = "PORT", default_value_t = 7000)]
    base_port: u16,
    /// State directory of the cell that runs here [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR", conflicts_with = "servers")]
    state: Option<PathBuf>,
}

/// A cell and its servers.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Place {
    pub(in crate::commands) cell: CellName,
    pub(in crate::commands) servers: Vec<Ipv4Addr>,
    pub(in crate::commands) base_port: u16,
    /// Where the cell runs, if it does here and this user may be its owner.
    pub(in crate::commands) state: Option<StateDir>,
}

impl PlaceOptions {
    /// Finds the cell: as named with its servers; the one that runs here; one that is mounted here; one that was
    /// logged in to.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(in crate::commands) fn place(&self) -> CommandResult<Place> {
        if let (Some(cell), false) = (&self.cell, self.servers.is_empty()) {
            let (servers, base_port) = (self.servers.clone(), self.base_port);
            return Ok(Place { cell: cell.clone(), servers, base_port, state: None });
        }
        let wanted = |cell: &CellName| self.cell.as_ref().is_none_or(|wanted| wanted == cell);
        if let Some(place) = self.running_here()?.filter(|place| wanted(&place.cell)) {
            return Ok(place);
        }
        only(mounted_or_logged_in_to(self.cell.as_ref())?, self.cell.as_ref())
    }

    fn running_here(&self) -> CommandResult<Option<Place>> {
        // Without a home directory nothing runs in it.
        if !StateDir::is_given(self.state.as_deref()) && StateDir::of_user().is_err() {
            return Ok(None);
        }
        let state = running_cells::of_cell(self.state.as_deref(), self.cell.as_ref())?;
        let Some(running) = state.running()? else { return Ok(None) };
        let IpAddr::V4(listen) = running.listen else { return Ok(None) };
        let cell = CellName::new(&running.cell).map_err(CommandError::failed)?;
        Ok(Some(Place { cell, servers: vec![listen], base_port: running.base_port, state: Some(state) }))
    }
}

/// The cell that is mounted here or was logged in to; `None` if there is none.
///
/// # Errors
/// There is more than one, and which is not said.
pub(in crate::commands) fn elsewhere(wanted: Option<&CellName>) -> CommandResult<Option<Place>> {
    let places = mounted_or_logged_in_to(wanted)?;
    if places.is_empty() { Ok(None) } else { only(places, wanted).map(Some) }
}

fn mounted_or_logged_in_to(wanted: Option<&CellName>) -> CommandResult<Vec<Place>> {
    let mut places = mounted();
    places.extend(TokenStore::current()?.all()?.into_iter().map(|kept| Place {
        cell: kept.cell,
        servers: kept.servers,
        base_port: kept.base_port,
        state: None,
    }));
    places.retain(|place| wanted.is_none_or(|wanted| *wanted == place.cell) && !place.servers.is_empty());
    Ok(places)
}

fn mounted() -> Vec<Place> {
    let place = |found: afs_cell::tokens::CellPlace| {
        let (servers, base_port) = (found.servers, found.base_port);
        Place { cell: found.cell, servers, base_port, state: None }
    };
    cell_places().into_iter().map(place).collect()
}

fn only(mut places: Vec<Place>, wanted: Option<&CellName>) -> CommandResult<Place> {
    places.sort_by(|a, b| a.cell.cmp(&b.cell));
    places.dedup_by(|a, b| a.cell == b.cell);
    match (places.len(), wanted) {
        (1, _) => places.pop().ok_or_else(|| CommandError::failed("no cell")),
        (0, Some(cell)) => Err(CommandError::usage(format!(
            "the servers of {cell} are not known on this machine; give them with --servers"
        ))),
        (0, None) => {
            Err(CommandError::usage("no cell runs or is mounted here; give one with --cell and --servers"))
        }
        _ => {
            let names: Vec<String> = places.iter().map(|place| place.cell.to_string()).collect();
            Err(CommandError::usage(format!(
                "there are several cells: {}; choose one with --cell",
                names.join(", ")
            )))
        }
    }
}

impl Place {
    /// A token of this cell, to be kept.
    pub(in crate::commands) fn kept(&self, user: String, grant: Grant) -> KeptToken {
        let Self { cell, servers, base_port, .. } = self.clone();
        KeptToken { cell, user, grant, servers, base_port }
    }
}
