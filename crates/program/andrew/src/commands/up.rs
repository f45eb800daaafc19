//! `andrew up`: starts a cell and mounts it.

use crate::commands::bypass_options::BypassOptions;
use crate::commands::cells_options::CellsOptions;
use crate::commands::data_path::DataPathOptions;
use crate::commands::mount::SnapshotOptions;
use crate::commands::mount_guard;
use crate::commands::serve::{Served, Serving, new_system};
use crate::commands::serve_options::ServeOptions;
use crate::commands::server_wait::ServerWait;
use crate::daemon::{self, Daemon, DaemonOptions};
use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_cell::CACHE_BYTES_MIN;
use afs_cell::cells::OtherCells;
use afs_cell::mounts;
use afs_cell::state::{StateDir, home};
use afs_cell::{Client, ClientOptions, KeptOptions, Ports};
use afs_fuse::Owner;
use afs_server::subject::ADMIN;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of `andrew up`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first start creates the cell. The mount is the cell's top directory, and the user who starts it
has all rights in it. Written data is on disk in the state directory when the program that
wrote it has closed the file, and is available again after the next start.

Commands of this user find all cells that the user has started by their state directories, and the mounts by
sockets in the file system, in whatever network namespace they run; they can call a cell only where its address is
reachable. For a cell in a namespace of its own, set ANDREW_STATE and ANDREW_RUN to directories of its own, for
`andrew up` and for the commands there. Commands that find several cells ask which.

Examples:
  andrew up                                    at ~/afs, until ctrl-C
  andrew up --detach                           in the background, until `andrew down`
  andrew up --state /srv/cell --mount /srv/afs --listen 192.0.2.1 --cell example.org
                                               reachable from other hosts too")]
pub struct Args {
    #[command(flatten)]
    serve: ServeOptions,
    /// Where to mount: an empty directory, created if it does not exist [default: that of the last start, at first ~/afs]
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    /// Serve without mounting
    #[arg(long, conflicts_with = "mount")]
    no_mount: bool,
    /// Admit other users of this machine to the mount, each with the rights of their own token
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", conflicts_with = "no_mount")]
    allow_other: Option<bool>,
    /// Size limit of the mount's disk cache [default: that of the last start, at first half of the free space, at most 8G]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    cache_size: Option<u64>,
    #[command(flatten)]
    cells: CellsOptions,
    #[command(flatten)]
    bypass: BypassOptions,
    /// Decide changes in directories that no other machine uses in the mount, and send them up to a second later. Faster for programs
    /// that make many small files; what was closed in the last second is lost if this machine crashes, except after fsync
    /// [default: as in the last start, at first false]
    #[arg(long, value_name = "true|false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", conflicts_with = "no_mount")]
    lease: Option<bool>,
    #[command(flatten)]
    server_wait: ServerWait,
    #[command(flatten)]
    snapshots: SnapshotOptions,
    #[command(flatten)]
    data_path: DataPathOptions,
    #[command(flatten)]
    daemon: DaemonOptions,
}

/// A running cell with its mount.
struct Up {
    serving: Serving,
    client: Option<Client>,
    mount: Option<MountPoint>,
    /// The mount shows the directory of all cells.
    shows_all: bool,
    /// Set if this process itself ends the mount.
    stopping: Arc<AtomicBool>,
}

/// A directory to mount on, and whether it was created for that.
pub(super) struct MountPoint {
    directory: PathBuf,
    made: bool,
}

/// Output of `andrew up`.
#[derive(Serialize, Deserialize)]
struct UpOutput {
    #[serde(flatten)]
    served: Served,
    mount: Option<PathBuf>,
    /// The top directory of the cell in the mount.
    #[serde(default)]
    top: Option<PathBuf>,
    detached: bool,
    /// The option with which other commands find this cell; empty if they need none.
    #[serde(default)]
    option: String,
}

impl Args {
    /// Runs the cell until stopped.
    ///
    /// # Errors
    /// The options are invalid, or cell or mount cannot be started; then nothing is left running.
    pub fn run(self, json: bool) -> CommandResult {
        let state = self.serve.state()?;
        // Before anything is created: a cell that is running already is an error.
        if state.path().exists() {
            drop(state.lock()?);
        }
        state.make()?;
        let detached = self.daemon.detach;
        let kept = self.to_keep()?.or(KeptOptions::read(state.path())?);
        daemon::run(self.daemon, json, &state.log(), || {
            Ok(Detachable { up: self.start(&state, &kept)?, detached })
        })
    }

    fn to_keep(&self) -> CommandResult<KeptOptions> {
        Ok(KeptOptions {
            mount: self.mount.as_deref().map(mounts::absolute).transpose()?,
            no_mount: self.no_mount.then_some(true),
            allow_other: self.allow_other,
            cache_size: self.cache_size,
            bypass_size: self.bypass.bypass_size,
            bypass_streams: self.bypass.bypass_streams,
            lease: self.lease,
            server_wait: self.server_wait.server_wait,
            snapshots: self.snapshots.given(),
            data_path: self.data_path.given(),
            cells: self.cells.given()?,
            ..self.serve.to_keep()
        })
    }

    fn start(&self, state: &StateDir, kept: &KeptOptions) -> CommandResult<Up> {
        // Faults of the mount point are found before anything is started.
        let mount = if kept.no_mount == Some(true) { None } else { Some(mount_point(kept)?) };
        let stopping = Arc::default();
        let started = self.start_at(state, kept, mount.as_ref(), &stopping);
        match started {
            Ok((serving, client)) => {
                kept.write(state.path())?;
                Ok(Up { serving, client, mount, shows_all: kept.cells.dynroot == Some(true), stopping })
            }
            Err(error) => {
                mount.iter().for_each(MountPoint::unmake);
                Err(error)
            }
        }
    }

    fn start_at(
        &self,
        state: &StateDir,
        kept: &KeptOptions,
        mount: Option<&MountPoint>,
        stopping: &Arc<AtomicBool>,
    ) -> CommandResult<(Serving, Option<Client>)> {
        let (system, other_cells) = (new_system()?, kept.cells.gather()?);
        let serving = Serving::start(state, &self.serve.servers(state, kept)?, &system)?;
        let mut serving = with_partition(serving)?;
        let Some(mount) = mount else { return Ok((serving, None)) };
        let options = client(state, kept, other_cells, &serving, mount);
        let mut client = Client::open(&system, &options)?;
        let own = serving.servers.owner_security(client.callback().clone());
        let shown = mount.directory.display().to_string();
        let told = stopping.clone();
        let ended = move || {
            if !told.load(Ordering::Acquire) {
                tracing::warn!("{shown} is no longer mounted; the servers continue");
            }
        };
        if let Err(error) = client.mount(&options, Some(own), ended) {
            stopping.store(true, Ordering::Release);
            let _ = client.stop();
            let _ = serving.stop();
            return Err(error.into());
        }
        mount_guard::start(&client);
        serving.mounted_at(mount.directory.clone())?;
        Ok((serving, Some(client)))
    }
}

/// A cell of which no partition opens has nothing to mount.
fn with_partition(serving: Serving) -> CommandResult<Serving> {
    if serving.servers.has_partition() {
        return Ok(serving);
    }
    let why = serving.servers.partitions_off_line().into_iter().find_map(|partition| partition.why);
    let _ = serving.stop();
    Err(CommandError::failed(why.unwrap_or_else(|| "the cell has no partition".to_owned())))
}

fn client(
    state: &StateDir,
    kept: &KeptOptions,
    other_cells: OtherCells,
    serving: &Serving,
    mount: &MountPoint,
) -> ClientOptions {
    ClientOptions {
        cell: serving.servers.cell().clone(),
        servers: serving.running.locations.clone(),
        other_cells,
        ports: Ports::from(serving.running.base_port),
        cache: state.cache(),
        cache_bytes: kept.cache_size,
        cache_secret: None,
        bypass: BypassOptions::of_kept(kept).limits(),
        lease: kept.lease == Some(true),
        server_wait: ServerWait { server_wait: kept.server_wait }.limit(),
        directory: mount.directory.clone(),
        allow_other: kept.allow_other == Some(true),
        snapshots: SnapshotOptions::shown(kept.snapshots.clone()),
        data_path: kept.data_path.config(),
        stores: kept.data_path.stores(),
        with_servers: true,
        owner: Some(Owner {
            vice: ADMIN,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
        }),
    }
}

fn mount_point(kept: &KeptOptions) -> CommandResult<MountPoint> {
    let given = kept.mount.clone().or_else(|| home().map(|h| h.join("afs")));
    let directory = given
        .ok_or_else(|| CommandError::usage("there is no home directory; give --mount DIR, or --no-mount"))?;
    MountPoint::prepare(&directory)
}

impl MountPoint {
    /// Creates the directory if it is missing, and unmounts what a killed process left there.
    pub(super) fn prepare(directory: &Path) -> CommandResult<Self> {
        let directory = mounts::absolute(directory)?;
        let shown = directory.display();
        // One after the other: a killed process may have been followed by another one.
        while mounts::list()?.iter().any(|m| m.directory == directory) {
            // Not by its attributes, which the kernel may still know.
            if mounts::is_dead(&directory) {
                afs_fuse::unmount(&directory, true).map_err(|e| {
                    CommandError::failed(format!("{shown} is a dead mount that cannot be unmounted: {e}"))
                })?;
                continue;
            }
            return Err(CommandError::usage(format!(
                "{shown} is mounted already; unmount it with `andrew umount {shown}`, or give another directory"
            )));
        }
        match fs::create_dir(&directory) {
            Ok(()) => Ok(Self { directory, made: true }),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let empty = afs_cell::state::is_empty_directory(&directory);
                let why = match empty {
                    Ok(true) => return Ok(Self { directory, made: false }),
                    Ok(false) => "is not empty; give an empty directory".to_owned(),
                    Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
                        "is not a directory; give a directory".to_owned()
                    }
                    Err(e) => format!("cannot be used: {e}"),
                };
                Err(CommandError::usage(format!("{shown} {why}")))
            }
            Err(e) => Err(CommandError::usage(format!("cannot make {shown}: {e}; give another directory"))),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes the directory if it was created for the mount.
    pub(super) fn unmake(&self) {
        if self.made {
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// Parses the size of a cache.
pub(super) fn cache_size(text: &str) -> Result<u64, String> {
    let bytes = crate::size::parse(text)?;
    if bytes < CACHE_BYTES_MIN { Err("a cache has at least 16M".to_owned()) } else { Ok(bytes) }
}

/// A cell, and whether the output shows `andrew down` or ctrl-C to stop it.
struct Detachable {
    up: Up,
    detached: bool,
}

impl Daemon for Detachable {
    type Output = UpOutput;

    fn output(&self) -> UpOutput {
        let mount = self.up.mount.as_ref().map(|m| m.directory.clone());
        let served = self.up.serving.served();
        let found = running_cells::of_process(None).is_ok_and(|found| found.path() == served.state());
        let option = if found { String::new() } else { format!(" --state {}", served.state().display()) };
        let top = match self.up.shows_all {
            true => mount.as_ref().map(|mount| mount.join(served.cell())),
            false => mount.clone(),
        };
        UpOutput { served, mount, top, detached: self.detached, option }
    }

    fn stop(mut self) -> CommandResult {
        self.up.stopping.store(true, Ordering::Release);
        let stored = self.up.client.map_or(Ok(()), Client::stop).map_err(CommandError::from);
        if let Err(error) = &stored {
            self.up.serving.troubled(error);
        }
        self.up.mount.iter().for_each(MountPoint::unmake);
        self.up.serving.stop()?;
        stored
    }
}

impl fmt::Display for UpOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(mount) = &self.mount else { return self.served.fmt(f) };
        let shown = mount.display();
        writeln!(f, "cell {} is up and mounted at {shown}", self.served.cell())?;
        writeln!(f, "its state is in {}", self.served.state().display())?;
        writeln!(f)?;
        let top = self.top.as_ref().unwrap_or(mount).display();
        writeln!(f, "try:  echo hello > {top}/hello")?;
        writeln!(f, "      andrew fs listacl {top}")?;
        let option = &self.option;
        writeln!(f, "      andrew vos{option} create projects && andrew fs mkmount {top}/projects projects")?;
        if self.detached { writeln!(f, "stop: andrew down{option}") } else { writeln!(f, "stop: ctrl-C") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_that_cannot_be_say_what_can() {
        let dir = tempfile::tempdir().unwrap();
        let said = |path: &Path| MountPoint::prepare(path).err().unwrap().message;
        fs::write(dir.path().join("file"), "").unwrap();
        let path = dir.path().display();
        assert_eq!(said(dir.path()), format!("{path} is not empty; give an empty directory"));
        let file = dir.path().join("file");
        assert_eq!(said(&file), format!("{path}/file is not a directory; give a directory"));
        let deep = dir.path().join("no/such");
        assert_eq!(
            said(&deep),
            format!(
                "cannot make {path}/no/such: No such file or directory (os error 2); give another directory"
            )
        );
    }

    #[test]
    fn a_directory_made_for_a_mount_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let made = MountPoint::prepare(&dir.path().join("afs")).unwrap();
        assert!(made.directory().is_dir());
        made.unmake();
        assert!(!made.directory().exists());
        let found = MountPoint::prepare(dir.path()).unwrap();
        found.unmake();
        assert!(dir.path().exists());
    }

    #[test]
    fn cache_sizes_have_a_least() {
        assert_eq!(cache_size("64M"), Ok(64 << 20));
        assert_eq!(cache_size("1M"), Err("a cache has at least 16M".to_owned()));
    }
}
