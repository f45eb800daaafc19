//! `andrew mount`: mounts a cell served by other machines.

use crate::commands::bypass_options::BypassOptions;
use crate::commands::cache_secret::cache_secret;
use crate::commands::cells_options::CellsOptions;
use crate::commands::data_path::DataPathOptions;
use crate::commands::mount_guard;
use crate::commands::serve::new_system;
use crate::commands::serve_options::cell_name;
use crate::commands::server_wait::ServerWait;
use crate::commands::up::{MountPoint, cache_size};
use crate::daemon::{self, Daemon, DaemonOptions};
use crate::error::{CommandError, CommandResult};
use crate::host_names;
use afs_cell::state::default_cache;
use afs_cell::{BASE_PORT_MAX, Client, ClientOptions, Ports};
use afs_net::System;
use afs_own as own;
use afs_wire::ids::CellName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `andrew mount`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The mount shows the cell's top directory, or with --dynroot a directory of cells. A user who has logged in with `andrew login` has the rights of the
token: the user who mounts also if the login was before the mount, other users (--allow-other) if it was
after. All other users are anonymous (system:anyuser).

Examples:
  andrew mount --cell example.org --servers 192.0.2.1,192.0.2.2 ~/example --detach
  andrew mount --cell example.org --dynroot --allow-other /afs --detach
                                     as root: /afs/example.org, and any other cell by its name
  andrew umount ~/example")]
pub struct Args {
    /// Name of the cell
    #[arg(long, value_name = "NAME", value_parser = cell_name)]
    cell: CellName,
    /// Addresses of its location servers [default: those of --cellservdb, or of DNS with --dns]
    #[arg(long, value_name = "HOST", value_parser = host_names::address, value_delimiter = ',')]
    servers: Vec<Ipv4Addr>,
    #[command(flatten)]
    cells: CellsOptions,
    /// Port of its file servers; the port of the location servers is three higher
    #[arg(long, value_name = "PORT", default_value_t = 7000,
          value_parser = clap::value_parser!(u16).range(1..=i64::from(BASE_PORT_MAX)))]
    base_port: u16,
    /// Directory for cached files [default: ~/.cache/andrew/NAME]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Size limit of the cache [default: half of the free space, at most 8G]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    cache_size: Option<u64>,
    /// Encrypt the cache with a key that the cell's login service gives for your token: log in first. Without the service it does not
    /// open, and after `andrew revoke YOU --lock` for nobody. Reading from the cache takes longer
    #[arg(long)]
    encrypt_cache: bool,
    #[command(flatten)]
    bypass: BypassOptions,
    /// Decide changes in directories that no other machine uses here, and send them up to a second later. Faster for programs that
    /// make many small files; what was closed in the last second is lost if this machine crashes, except after fsync
    #[arg(long)]
    lease: bool,
    /// Admit other users of this machine, each with the rights of their own token
    #[arg(long)]
    allow_other: bool,
    #[command(flatten)]
    server_wait: ServerWait,
    #[command(flatten)]
    snapshots: SnapshotOptions,
    #[command(flatten)]
    data_path: DataPathOptions,
    /// Where to mount: an empty directory, created if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    daemon: DaemonOptions,
}

/// How a mount shows snapshots: options of all commands that mount.
#[derive(clap::Args, Clone, Debug)]
pub struct SnapshotOptions {
    /// Name of the directory of snapshots in the root of each volume, or "off" [default: .snapshots]
    #[arg(long, value_name = "NAME", value_parser = checked)]
    snapshots: Option<String>,
}

impl SnapshotOptions {
    /// The name; `None` if snapshots are not shown.
    pub fn name(&self) -> Option<String> {
        Self::shown(self.snapshots.clone())
    }

    /// The value of the option, if it was given.
    pub fn given(&self) -> Option<String> {
        self.snapshots.clone()
    }

    /// The directory name for a value of the option, or the default.
    pub fn shown(option: Option<String>) -> Option<String> {
        Some(option.unwrap_or_else(|| USUAL.to_owned())).filter(|name| name != OFF)
    }
}

/// A mount of a cell served by other machines.
struct MountedCell {
    client: Client,
    mount: MountPoint,
    cell: String,
    cache: PathBuf,
    detached: bool,
}

/// Output of `andrew mount`.
#[derive(Serialize, Deserialize)]
struct MountOutput {
    cell: String,
    #[serde(serialize_with = "crate::output::path")]
    mount: PathBuf,
    #[serde(serialize_with = "crate::output::path")]
    cache: PathBuf,
    detached: bool,
}

impl Args {
    /// Mounts, and serves until unmounted or stopped.
    ///
    /// # Errors
    /// The cell cannot be reached, or the directory or the cache cannot be used.
    pub fn run(self, json: bool) -> CommandResult {
        let cache = self.cache.clone().or_else(|| default_cache(self.cell.as_str()));
        let cache =
            cache.ok_or_else(|| CommandError::usage("there is no home directory; give --cache DIR"))?;
        let cache = afs_cell::mounts::absolute(&cache)?;
        own::given_directory(&cache).map_err(|e| {
            let shown = cache.display();
            CommandError::usage(format!(
                "cannot make the cache {shown}: {e}; give another directory with --cache"
            ))
        })?;
        let log = cache.join("log");
        daemon::run(self.daemon, json, &log, || self.start(cache))
    }

    fn start(&self, cache: PathBuf) -> CommandResult<MountedCell> {
        let other_cells = self.cells.given()?.gather()?;
        let (system, ports) = (new_system()?, Ports::from(self.base_port));
        let servers = match self.servers.is_empty() {
            true => other_cells.servers_of(&self.cell, ports.location(), &system.env())?,
            false => self.servers.clone(),
        };
        let cache_secret = match self.encrypt_cache {
            true => Some(cache_secret(&self.cell, &servers, self.base_port)?),
            false => None,
        };
        let mount = MountPoint::prepare(&self.directory)?;
        let options = ClientOptions {
            cell: self.cell.clone(),
            servers,
            other_cells,
            ports,
            cache: cache.clone(),
            cache_bytes: self.cache_size,
            cache_secret,
            bypass: self.bypass.limits(),
            lease: self.lease,
            server_wait: self.server_wait.limit(),
            directory: mount.directory().to_owned(),
            allow_other: self.allow_other,
            snapshots: self.snapshots.name(),
            data_path: self.data_path.given().config(),
            stores: self.data_path.given().stores(),
            with_servers: false,
            owner: None,
        };
        match mounted(&system, &options) {
            Ok(client) => {
                let (cell, detached) = (self.cell.to_string(), self.daemon.detach);
                Ok(MountedCell { client, mount, cell, cache, detached })
            }
            Err(error) => {
                mount.unmake();
                Err(error)
            }
        }
    }
}

fn mounted(system: &Arc<System>, options: &ClientOptions) -> CommandResult<Client> {
    let mut client = Client::open(system, options)?;
    match client.mount(options, None, daemon::stop_this_process) {
        Ok(()) => {
            mount_guard::start(&client);
            Ok(client)
        }
        Err(error) => {
            let _ = client.stop();
            Err(error.into())
        }
    }
}

impl Daemon for MountedCell {
    type Output = MountOutput;

    fn output(&self) -> MountOutput {
        MountOutput {
            cell: self.cell.clone(),
            mount: self.mount.directory().to_owned(),
            cache: self.cache.clone(),
            detached: self.detached,
        }
    }

    fn stop(self) -> CommandResult {
        let stopped = self.client.stop();
        self.mount.unmake();
        Ok(stopped?)
    }
}

impl fmt::Display for MountOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.mount.display();
        writeln!(f, "cell {} is mounted at {shown}", self.cell)?;
        writeln!(f, "its cache is in {}", self.cache.display())?;
        let stop = if self.detached { format!("andrew umount {shown}") } else { "ctrl-C".into() };
        writeln!(f, "stop: {stop}")
    }
}

const USUAL: &str = ".snapshots";
const OFF: &str = "off";
/// Longest name that the kernel looks up, in bytes.
const NAME_BYTES_MAX: usize = 255;

fn checked(text: &str) -> Result<String, String> {
    let is_name =
        !matches!(text, "" | "." | "..") && !text.contains(['/', '\0']) && text.len() <= NAME_BYTES_MAX;
    if is_name { Ok(text.to_owned()) } else { Err("not a name that a directory can have".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_off() {
        let name = |text: &str| SnapshotOptions { snapshots: Some(checked(text).unwrap()) }.name();
        assert_eq!(name(".snapshots").as_deref(), Some(".snapshots"));
        assert_eq!(name("off"), None);
        assert_eq!(SnapshotOptions { snapshots: None }.name().as_deref(), Some(".snapshots"));
        for text in ["", ".", "..", "a/b"] {
            assert!(checked(text).is_err(), "{text:?}");
        }
    }
}
