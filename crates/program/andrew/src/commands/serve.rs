//! `andrew serve`: runs the servers of a cell.

use crate::commands::serve_options::ServeOptions;
use crate::daemon::{self, Daemon, DaemonOptions};
use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_cell::control::ControlServer;
use afs_cell::state::{CellProcess, StateDir, StateLock};
use afs_cell::{JoinFile, KeptOptions, PartitionReport, ServerFile, ServerOptions, Servers};
use afs_net::System;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Options of `andrew serve`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The first start creates the cell: a state directory, and the volumes root.cell and root.afs.

Examples:
  andrew serve --listen 192.0.2.1 --cell example.org --detach
  andrew mount --cell example.org --servers 192.0.2.1 /mnt      (on any host)")]
pub struct Args {
    /// Read the settings from a file, as a cell with several hosts requires
    #[arg(long, value_name = "FILE", conflicts_with_all = ["state", "cell", "listen", "base_port", "anyuser", "rxkad", "serve_data_path"])]
    config: Option<PathBuf>,
    /// Make this host a server of a cell, with the file that `andrew server add` wrote on another host, and serve
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "cell", "listen", "base_port", "anyuser", "rxkad", "serve_data_path"])]
    join: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeOptions,
    #[command(flatten)]
    daemon: DaemonOptions,
}

/// The servers of a cell, with the socket for its owner.
pub(super) struct Serving {
    pub(super) servers: Servers,
    control: ControlServer,
    pub(super) running: CellProcess,
    lock: StateLock,
    _link: Option<running_cells::Link>,
    state: PathBuf,
    locations: Vec<IpAddr>,
}

/// Output of `andrew serve`.
#[derive(Serialize, Deserialize)]
pub struct Served {
    cell: String,
    listen: IpAddr,
    base_port: u16,
    #[serde(serialize_with = "crate::output::path")]
    state: PathBuf,
    /// Location servers of the cell.
    locations: Vec<IpAddr>,
    /// Partitions that do not serve.
    off_line: Vec<PartitionReport>,
}

impl Served {
    /// The cell.
    pub(super) fn cell(&self) -> &str {
        &self.cell
    }

    /// Its state directory.
    pub(super) fn state(&self) -> &Path {
        &self.state
    }
}

impl Args {
    /// Serves until stopped.
    ///
    /// # Errors
    /// The configuration is invalid, or the servers cannot be started.
    pub fn run(self, json: bool) -> CommandResult {
        let state = self.serve.state()?;
        if let Some(path) = &self.config {
            return self.configured(json, path, None);
        }
        state.make()?;
        if let Some(join) = &self.join {
            let config = self.joined(join, &state)?;
            return self.configured(json, &config, Some(&state));
        }
        let kept = self.serve.to_keep().or(KeptOptions::read(state.path())?);
        let options = self.serve.servers(&state, &kept)?;
        daemon::run(self.daemon, json, &state.log(), || {
            let serving = Serving::start(&state, &options, &new_system()?)?;
            kept.write(state.path())?;
            Ok(serving)
        })
    }

    /// Unpacks a join file, except in the background process, where that is done already.
    fn joined(&self, join: &Path, state: &StateDir) -> CommandResult<PathBuf> {
        if self.daemon.is_child() {
            return Ok(JoinFile::config(state.path()));
        }
        Ok(JoinFile::read(join)?.unpack(state.path())?)
    }

    fn configured(&self, json: bool, path: &Path, state: Option<&StateDir>) -> CommandResult {
        let file = ServerFile::read(path)?;
        let state = match state {
            Some(state) => state.clone(),
            None => StateDir::resolve(Some(&file.state_beside(path)?))?,
        };
        state.make()?;
        self.live(json, &state, &file.options(state.path()))
    }

    fn live(&self, json: bool, state: &StateDir, options: &ServerOptions) -> CommandResult {
        daemon::run(self.daemon, json, &state.log(), || Serving::start(state, options, &new_system()?))
    }
}

/// The runtime of servers and clients.
pub(super) fn new_system() -> CommandResult<std::sync::Arc<System>> {
    System::new().map_err(CommandError::failed)
}

impl Serving {
    /// Locks the state directory, starts the servers and opens the control socket.
    pub(super) fn start(
        state: &StateDir,
        options: &ServerOptions,
        system: &std::sync::Arc<System>,
    ) -> CommandResult<Self> {
        let mut lock = state.lock()?;
        let servers = Servers::start(system, options)?;
        let control = ControlServer::start(&state.control(), servers.handler())
            .map_err(|e| CommandError::failed(format!("cannot open the control socket: {e}")))?;
        let own = CellProcess::own(servers.cell().as_str(), options.listen, options.ports.base());
        let (locations, key_file) = (options.location_servers(), options.key_file.clone());
        let data_path = servers.data_path();
        let running = CellProcess { locations, key_file, data_path, ..own };
        lock.record(&running)?;
        let locations = options.location_servers().into_iter().map(IpAddr::V4).collect();
        let _link = running_cells::register(state);
        Ok(Self { servers, control, running, lock, _link, state: state.path().to_owned(), locations })
    }

    /// Records the mount point of the cell.
    pub(super) fn mounted_at(&mut self, directory: PathBuf) -> CommandResult {
        self.running.mount = Some(directory);
        Ok(self.lock.record(&self.running)?)
    }

    /// Records what failed during the stop, for the command that requested it.
    pub(super) fn troubled(&mut self, error: &CommandError) {
        self.running.trouble = Some(error.message.clone());
        if let Err(error) = self.lock.record(&self.running) {
            tracing::warn!("{error}");
        }
    }

    pub(super) fn served(&self) -> Served {
        Served {
            cell: self.running.cell.clone(),
            listen: self.running.listen,
            base_port: self.running.base_port,
            state: self.state.clone(),
            locations: self.locations.clone(),
            off_line: self.servers.partitions_off_line(),
        }
    }
}

impl Daemon for Serving {
    type Output = Served;

    fn output(&self) -> Served {
        self.served()
    }

    fn stop(self) -> CommandResult {
        drop(self.control);
        self.servers.stop();
        drop(self.lock);
        Ok(())
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell, listen, base_port, state, locations, off_line } = self;
        writeln!(f, "cell {cell} is served at {listen}, ports from {base_port}")?;
        for PartitionReport { partition, why, .. } in off_line {
            writeln!(f, "partition {partition} is off line: {}", why.as_deref().unwrap_or_default())?;
        }
        writeln!(f, "its state is in {}", state.display())?;
        if listen.is_loopback() {
            return writeln!(f, "only this host can reach it; --listen IP admits others");
        }
        let port = if *base_port == 7000 { String::new() } else { format!(" --base-port {base_port}") };
        let servers = locations.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        writeln!(f, "mount it with: andrew mount --cell {cell} --servers {servers}{port} DIR")
    }
}
