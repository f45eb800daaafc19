//! Choice of the cell that a login command refers to, with its servers.

use crate::error::{CommandError, CommandResult};
use crate::host_names;
use crate::running_cells;
use afs_cell::state::StateDir;
use afs_cell::tokens::{KeptToken, TokenStore, home_cells, known_cells};
use afs_login::Grant;
use afs_wire::ids::CellName;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

/// Options that select the cell.
#[derive(clap::Args, Clone, Debug)]
pub(in crate::commands) struct CellOptions {
    /// Name of the cell [default: the one that runs here, is mounted here, or that you logged in to]
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) cell: Option<CellName>,
    /// Database servers of the cell, if they are not known on this machine
    #[arg(long, value_name = "HOST", value_parser = host_names::address, value_delimiter = ',', requires = "cell")]
    servers: Vec<Ipv4Addr>,
    /// Port of the cell's file servers, with --servers; the others follow from it
    #[arg(long, value_name = "PORT", default_value_t = 7000)]
    base_port: u16,
    /// State directory of the cell that runs here [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR", conflicts_with = "servers")]
    state: Option<PathBuf>,
}

/// The selected cell and its servers.
#[derive(Clone, Debug)]
pub(in crate::commands) struct ChosenCell {
    pub(in crate::commands) cell: CellName,
    pub(in crate::commands) servers: Vec<Ipv4Addr>,
    pub(in crate::commands) base_port: u16,
    /// State directory of the cell, if it runs here and this user may be its owner.
    pub(in crate::commands) state: Option<StateDir>,
}

impl CellOptions {
    /// Selects the cell: the one given with its servers; the one that runs here; one that is mounted here; one with a
    /// kept token.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub(in crate::commands) fn choose(&self) -> CommandResult<ChosenCell> {
        if let (Some(cell), false) = (&self.cell, self.servers.is_empty()) {
            let (servers, base_port) = (self.servers.clone(), self.base_port);
            return Ok(ChosenCell { cell: cell.clone(), servers, base_port, state: None });
        }
        let wanted = |cell: &CellName| self.cell.as_ref().is_none_or(|wanted| wanted == cell);
        if let Some(chosen) = self.running_here()?.filter(|chosen| wanted(&chosen.cell)) {
            return Ok(chosen);
        }
        only(known_on_machine(self.cell.as_ref())?, self.cell.as_ref())
    }

    fn running_here(&self) -> CommandResult<Option<ChosenCell>> {
        // Without a home directory no cell has its state there.
        if !StateDir::is_given(self.state.as_deref()) && StateDir::of_user().is_err() {
            return Ok(None);
        }
        let state = running_cells::of_cell(self.state.as_deref(), self.cell.as_ref())?;
        let Some(running) = state.running()? else { return Ok(None) };
        let IpAddr::V4(listen) = running.listen else { return Ok(None) };
        let cell = CellName::new(&running.cell).map_err(CommandError::failed)?;
        Ok(Some(ChosenCell { cell, servers: vec![listen], base_port: running.base_port, state: Some(state) }))
    }
}

/// The cell that is mounted here or has a kept token; `None` if there is none.
///
/// # Errors
/// There is more than one, and none was selected.
pub(in crate::commands) fn mounted_or_logged_in(
    wanted: Option<&CellName>,
) -> CommandResult<Option<ChosenCell>> {
    let cells = known_on_machine(wanted)?;
    if cells.is_empty() { Ok(None) } else { only(cells, wanted).map(Some) }
}

fn known_on_machine(wanted: Option<&CellName>) -> CommandResult<Vec<ChosenCell>> {
    let mut cells = mounted(wanted);
    cells.extend(TokenStore::current()?.all()?.into_iter().map(|kept| ChosenCell {
        cell: kept.cell,
        servers: kept.servers,
        base_port: kept.base_port,
        state: None,
    }));
    cells.retain(|chosen| wanted.is_none_or(|wanted| *wanted == chosen.cell) && !chosen.servers.is_empty());
    Ok(cells)
}

/// The home cells of the mounts; the other cells that they know, of which there may be hundreds, are for the user to name.
fn mounted(wanted: Option<&CellName>) -> Vec<ChosenCell> {
    let chosen = |found: afs_cell::tokens::CellLocation| {
        let (servers, base_port) = (found.servers, found.base_port);
        ChosenCell { cell: found.cell, servers, base_port, state: None }
    };
    let cells = if wanted.is_some() { known_cells() } else { home_cells() };
    cells.into_iter().map(chosen).collect()
}

fn only(mut cells: Vec<ChosenCell>, wanted: Option<&CellName>) -> CommandResult<ChosenCell> {
    cells.sort_by(|a, b| a.cell.cmp(&b.cell));
    cells.dedup_by(|a, b| a.cell == b.cell);
    match (cells.len(), wanted) {
        (1, _) => cells.pop().ok_or_else(|| CommandError::failed("no cell")),
        (0, Some(cell)) => Err(CommandError::usage(format!(
            "the servers of {cell} are not known on this machine; give them with --servers"
        ))),
        (0, None) => {
            Err(CommandError::usage("no cell runs or is mounted here; give one with --cell and --servers"))
        }
        _ => {
            let names: Vec<String> = cells.iter().map(|chosen| chosen.cell.to_string()).collect();
            Err(CommandError::usage(format!(
                "there are several cells: {}; choose one with --cell",
                names.join(", ")
            )))
        }
    }
}

impl ChosenCell {
    /// A token of this cell, in the form in which it is kept.
    pub(in crate::commands) fn kept(&self, user: String, grant: Grant) -> KeptToken {
        let Self { cell, servers, base_port, .. } = self.clone();
        KeptToken { cell, user, grant, servers, base_port }
    }
}
