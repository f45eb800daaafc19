//! Directories of a measurement: the mounts they are in, with the processes that serve them.

use super::failed;
use super::mount_cache::MountCache;
use afs_cell::mounts::{self, Mount};
use afs_cell::tokens::{MountLocation, known_cells};
use afs_lab::bulk::{Cache, KernelCache, Place, Process};
use andrew::error::{CommandError, CommandResult};
use andrew::running_cells;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Processes given by the user, which replace those of the same name that are found.
type Given = [(String, u32)];

/// The directory to store in.
///
/// # Errors
/// It is not a directory, or a process does not run.
pub(crate) fn writer(directory: &Path, given: &Given) -> CommandResult<Place> {
    place(directory, "--dir", false, given)
}

/// A directory to fetch in what is stored in `written`.
///
/// # Errors
/// As [`writer`].
pub(super) fn reader(directory: &Path, written: &Path, given: &Given) -> CommandResult<Place> {
    let device = |path: &Path| fs::metadata(path).map(|status| status.dev()).ok();
    place(directory, "--read-dir", device(directory) != device(written), given)
}

fn place(directory: &Path, option: &str, is_other_client: bool, given: &Given) -> CommandResult<Place> {
    if !directory.is_dir() {
        let shown = directory.display();
        return Err(CommandError::usage(format!(
            "{shown} is not a directory; give an existing one with {option}"
        )));
    }
    let real = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mount = mounts::containing(&real)?;
    let cache: Box<dyn Cache> = match &mount {
        Some(_) => Box::new(MountCache { directory: real.clone() }),
        None => Box::new(KernelCache { is_other_client }),
    };
    let mut named = given.to_vec();
    for (name, pid) in mount.map_or_else(Vec::new, |mount| found(&mount)) {
        if named.iter().all(|(known, _)| *known != name) {
            named.push((name, pid));
        }
    }
    let processes = named.into_iter().map(|(name, pid)| Process::new(name, pid));
    let processes = processes.collect::<Result<_, _>>().map_err(|e| CommandError::usage(failed(e)))?;
    Ok(Place { directory: directory.to_owned(), cache, processes })
}

/// The process of a mount, and those that serve its cell, of this user's on this machine.
fn found(mount: &Mount) -> Vec<(String, u32)> {
    let is_it = |location: &MountLocation| location.device == mount.device;
    let client = known_cells().into_iter().filter_map(|cell| cell.mount).find(is_it);
    let name = |serves| if serves { "client and server" } else { "client" };
    let client = client.map(|location| (name(location.serves).to_owned(), location.pid));
    let mut servers: Vec<_> = running_cells::list()
        .unwrap_or_default()
        .into_iter()
        .filter(|cell| cell.running.cell.eq_ignore_ascii_case(&mount.source))
        .map(|cell| cell.running)
        .collect();
    servers.retain(|server| client.as_ref().is_none_or(|(_, pid)| *pid != server.pid));
    let several = servers.len() > 1;
    let server = |server: afs_cell::state::CellProcess| {
        let name = if several { format!("server {}", server.listen) } else { "server".to_owned() };
        (name, server.pid)
    };
    client.into_iter().chain(servers.into_iter().map(server)).collect()
}
