//! Registry of the running cells of a user: links to their state directories, in the user's own state directory.

use crate::error::{CommandError, CommandResult};
use afs_cell::state::{CellProcess, StateDir};
use afs_cell::tokens::CellLocation;
use afs_own as own;
use afs_wire::ids::CellName;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Directory of the links.
const LINKS: &str = "cells";
/// Most links read.
const LINKS_MAX: usize = 256;

/// A running cell of this user.
#[derive(Clone, Debug)]
pub struct RunningCell {
    /// Its state directory.
    pub state: StateDir,
    /// The record of its process.
    pub running: CellProcess,
}

/// Link to a state directory; removed when it is dropped.
#[derive(Debug)]
pub struct Link(PathBuf);

/// Registers a running cell, so that later commands of this user find it. `None` if there is no home directory, or for
/// a directory that commands find without a link.
#[must_use]
pub fn register(state: &StateDir) -> Option<Link> {
    let usual = StateDir::of_user().ok()?;
    if usual.path() == state.path() {
        return None;
    }
    let links = usual.path().join(LINKS);
    own::given_directory(&links).ok()?;
    let link = links.join(link_name(state.path())?);
    match symlink(state.path(), &link) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            tracing::warn!("commands need --state to find this cell: {}: {error}", link.display());
            None
        }
        _ => Some(Link(link)),
    }
}

/// Name of the link of a directory: unique, from its device and inode.
fn link_name(state: &Path) -> Option<String> {
    let meta = fs::metadata(state).ok()?;
    Some(format!("{:x}-{:x}", meta.dev(), meta.ino()))
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// All running cells of this user, ordered by state directory.
///
/// # Errors
/// A state directory cannot be read.
pub fn list() -> CommandResult<Vec<RunningCell>> {
    let Ok(usual) = StateDir::of_user() else { return Ok(Vec::new()) };
    let links = fs::read_dir(usual.path().join(LINKS)).into_iter().flatten().flatten().take(LINKS_MAX);
    let linked = links.filter_map(|link| fs::read_link(link.path()).ok());
    let mut found = BTreeMap::new();
    for path in linked.chain([usual.path().to_owned()]) {
        let state = StateDir::resolve(Some(&path))?;
        // Another user's directory is not trusted, nor one that cannot be read any more.
        if let Ok(Some(running)) = state.running() {
            found.insert(path, RunningCell { state, running });
        }
    }
    Ok(found.into_values().collect())
}

/// The state directory of the cell that a command refers to: the one given with `--state` or `ANDREW_STATE`; else that
/// of the only running cell, with the name `cell` if given; else the default one. Of several servers of one cell, one
/// that serves its databases.
///
/// # Errors
/// Several cells run.
pub fn of_cell(given: Option<&Path>, cell: Option<&CellName>) -> CommandResult<StateDir> {
    if StateDir::is_given(given) {
        return Ok(StateDir::resolve(given)?);
    }
    let mut found = list()?;
    found.retain(|one| cell.is_none_or(|cell| one.running.cell.eq_ignore_ascii_case(cell.as_str())));
    let is_one_cell = found.windows(2).all(|pair| pair[0].running.cell == pair[1].running.cell);
    let first = found.iter().find(|one| serves_databases(&one.running)).or(found.first());
    match first {
        None => Ok(StateDir::resolve(None)?),
        Some(first) if is_one_cell => Ok(first.state.clone()),
        Some(_) => Err(which(&found)),
    }
}

/// As [`of_cell`], for a command that refers to one process.
///
/// # Errors
/// Several run.
pub fn of_process(given: Option<&Path>) -> CommandResult<StateDir> {
    if StateDir::is_given(given) {
        return Ok(StateDir::resolve(given)?);
    }
    match list()?.as_slice() {
        [] => Ok(StateDir::resolve(None)?),
        [one] => Ok(one.state.clone()),
        several => Err(which(several)),
    }
}

/// The running cell of this user at a location, if it runs here.
///
/// # Errors
/// As [`list`].
pub fn serving(place: &CellLocation) -> CommandResult<Option<RunningCell>> {
    let is_it = |one: &RunningCell| {
        let running = &one.running;
        let listens = |server: &Ipv4Addr| running.listen == *server;
        running.cell.eq_ignore_ascii_case(place.cell.as_str())
            && running.base_port == place.base_port
            && place.servers.iter().any(listens)
    };
    Ok(list()?.into_iter().find(is_it))
}

fn serves_databases(running: &CellProcess) -> bool {
    let listen = if let IpAddr::V4(listen) = running.listen { Some(listen) } else { None };
    running.locations.is_empty() || listen.is_some_and(|listen| running.locations.contains(&listen))
}

fn which(several: &[RunningCell]) -> CommandError {
    let shown = |one: &RunningCell| format!("{} (--state {})", one.running.cell, one.state.path().display());
    let names: Vec<String> = several.iter().map(shown).collect();
    CommandError::usage(format!("several cells run here: {}; choose one with --state", names.join(", ")))
}
