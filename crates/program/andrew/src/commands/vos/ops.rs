//! Access to a cell for operations of `afs-admin`: connections, identity and journal.

use super::journal_choice::JournalChoice;
use super::journal_files::FileJournal;
use super::progress::Bar;
use super::route_options::RouteOptions;
use super::site_words::NamedSite;
use crate::commands::auth_options::{is_without_groups, local_security};
use crate::commands::login::cell_choice::mounted_or_logged_in;
use crate::commands::server_order::by_first_reply;
use crate::error::{CommandError, CommandResult};
use crate::running_cells;
use afs_admin::journal::Holder;
use afs_admin::{Admin, AdminError, AdminResult, Cell, CellJournal, Journal, ServerPartition};
use afs_cell::key_store::KeyStore;
use afs_cell::state::{CellProcess, StateDir};
use afs_net::{System, Udp};
use afs_wire::ids::{PartitionId, VolumeId};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

/// Most partitions listed in an error.
const PLACES_SHOWN_MAX: usize = 8;

/// A cell with the means to run operations on its volumes.
pub struct Ops {
    system: Arc<System>,
    _udp: Udp,
    admin: Admin,
    bar: Arc<Bar>,
    /// The server that runs here: the meaning of `localhost`, and the default server.
    own: Option<Ipv4Addr>,
    /// Location servers.
    location: Vec<SocketAddr>,
}

/// The selected cell, before any socket is opened.
struct SelectedCell {
    cell: Cell,
    own: Option<Ipv4Addr>,
    /// Key file of the cell that runs here, to be used for its calls.
    key_file: Option<PathBuf>,
    name: Option<afs_wire::ids::CellName>,
    servers: Vec<Ipv4Addr>,
}

impl Ops {
    /// Selects the cell and opens connections and journal.
    ///
    /// # Errors
    /// No cell is selected, its key or the user's token cannot be used, or there is no socket.
    pub fn open(route: &RouteOptions, json: bool) -> CommandResult<Self> {
        let failed = |e: std::io::Error| CommandError::failed(format!("vos: cannot open a socket: {e}"));
        let system = System::with_workers(1).map_err(|e| CommandError::failed(format!("vos: {e}")))?;
        let found = find(route)?;
        let security = match &found.key_file {
            Some(path) => local_security(&system, path)?,
            None => route.auth_options.security(&system, found.name.as_ref(), &found.servers)?,
        };
        let udp = Udp::bind(&system, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), afs_rx::Config::default());
        let udp = udp.map_err(failed)?;
        let location = by_first_reply(&system, &udp, &found.cell.location);
        let cell = Cell { location: location.clone(), ..found.cell.clone() };
        let kept = CellJournal::new(system.env(), udp.rx(), &security, &cell);
        let journal = journal(route, kept, &found.cell)?;
        let admin = Admin::new(system.env(), udp.rx().clone(), security, cell, journal, holder());
        let bar = Arc::new(Bar::new(json, route.verbose));
        let admin = admin.with_progress(bar.clone());
        Ok(Self { system, _udp: udp, admin, bar, own: found.own, location })
    }

    /// Runs an operation to its end.
    ///
    /// # Errors
    /// That of the operation, as a command tells it.
    pub fn run<T, F, W>(&self, work: W) -> CommandResult<T>
    where
        W: FnOnce(Admin) -> F,
        F: Future<Output = AdminResult<T>>,
    {
        self.ask(work).map_err(|error| told(&error))
    }

    /// As [`Ops::run`], with the operation's own error.
    pub(in crate::commands) fn ask<T, F, W>(&self, work: W) -> AdminResult<T>
    where
        W: FnOnce(Admin) -> F,
        F: Future<Output = AdminResult<T>>,
    {
        let done = self.system.block_on(work(self.admin.clone()));
        self.bar.clear();
        done
    }

    /// The cell's location servers.
    pub(in crate::commands) fn location_servers(&self) -> Vec<Ipv4Addr> {
        let v4 = |server: &SocketAddr| if let IpAddr::V4(v4) = server.ip() { Some(v4) } else { None };
        self.location.iter().filter_map(v4).collect()
    }

    /// Port of the cell's file servers; the others follow from it.
    pub(in crate::commands) fn base_port(&self) -> u16 {
        self.location.first().map_or(7000, |server| server.port().saturating_sub(3))
    }

    /// The address for a server's name.
    pub(in crate::commands) fn server(&self, name: &str) -> CommandResult<Ipv4Addr> {
        match self.own {
            Some(own) if name == "localhost" => return Ok(own),
            // If the cell itself is on loopback, each loopback address is a server of its own.
            Some(own) if name == "127.0.0.1" && !own.is_loopback() => return Ok(own),
            _ => {}
        }
        let found = (name, 0)
            .to_socket_addrs()
            .ok()
            .and_then(|mut all| all.find_map(|a| if let IpAddr::V4(v4) = a.ip() { Some(v4) } else { None }));
        found.ok_or_else(|| {
            CommandError::usage(format!("vos: '{name}' is not a server; give its IPv4 address or its name"))
        })
    }

    /// The server with this name, or the one that runs here.
    pub(in crate::commands) fn server_or_own(&self, name: Option<&str>) -> CommandResult<Ipv4Addr> {
        match name {
            Some(name) => self.server(name),
            None => {
                self.own.ok_or_else(|| CommandError::usage(
                    "vos: no server of the cell runs here; give one by its address (`andrew server list` shows them)",
                ))
            }
        }
    }

    /// A server and a partition. If a server runs here, it need not be given; nor need the partition, which is then the
    /// first one.
    pub(in crate::commands) fn place(
        &self,
        server: Option<&str>,
        partition: Option<&str>,
    ) -> CommandResult<Option<ServerPartition>> {
        let server = match (server, self.own) {
            (Some(name), _) => self.server(name)?,
            (None, Some(own)) if partition.is_some() => own,
            (None, _) if partition.is_some() => {
                return Err(CommandError::usage("vos: a partition needs its server; give both"));
            }
            (None, _) => return Ok(None),
        };
        let partition = match partition {
            Some(text) => partition_id(text)?,
            None if self.own.is_some() => PartitionId(0),
            None => return Err(CommandError::usage("vos: a server needs its partition; give both")),
        };
        Ok(Some(ServerPartition::new(server, partition)))
    }

    /// As [`Ops::place`], if a partition is required.
    pub(in crate::commands) fn needed_place(
        &self,
        server: Option<&str>,
        partition: Option<&str>,
    ) -> CommandResult<ServerPartition> {
        match (self.place(server, partition)?, self.own) {
            (Some(place), _) => Ok(place),
            (None, Some(own)) => Ok(ServerPartition::new(own, PartitionId(0))),
            (None, None) => self.only_place(),
        }
    }

    /// The partition and the word for the volume that a command names.
    pub(super) fn place_and_volume(&self, site: NamedSite) -> CommandResult<(ServerPartition, String)> {
        let NamedSite { volume, server, partition, .. } = site;
        let volume =
            volume.ok_or_else(|| CommandError::usage("vos: give a server, a partition and a volume"))?;
        Ok((self.needed_place(server.as_deref(), partition.as_deref())?, volume))
    }

    /// The cell's only partition.
    fn only_place(&self) -> CommandResult<ServerPartition> {
        let places = self.run(|admin| async move {
            let mut places = Vec::new();
            for server in admin.servers().await? {
                // An unreachable server cannot take a volume either.
                let partitions = admin.partitions(server.address()).await.unwrap_or_default();
                places.extend(
                    partitions.into_iter().map(|partition| ServerPartition::new(server.address(), partition)),
                );
            }
            Ok(places)
        })?;
        match places.as_slice() {
            [one] => Ok(*one),
            several => {
                let shown: Vec<String> =
                    several.iter().take(PLACES_SHOWN_MAX).map(ToString::to_string).collect();
                Err(CommandError::usage(format!(
                    "vos: give a server and a partition; the cell has {}",
                    if shown.is_empty() { "none that replies".to_owned() } else { shown.join(", ") }
                )))
            }
        }
    }
}

/// Parses a partition.
pub(in crate::commands) fn partition_id(text: &str) -> CommandResult<PartitionId> {
    text.parse().map_err(|_| {
        CommandError::usage(format!(
            "vos: could not interpret partition name '{text}'; give a letter, vicepa or /vicepa"
        ))
    })
}

/// Parses the number of a volume.
pub(in crate::commands) fn volume_id(text: &str) -> CommandResult<VolumeId> {
    text.parse::<u32>()
        .map(VolumeId)
        .map_err(|_| CommandError::usage(format!("vos: '{text}' is not the number of a volume")))
}

/// Error of a command for the error of an operation.
pub(in crate::commands) fn told(error: &AdminError) -> CommandError {
    let line = format!("vos: {error}");
    if error.is_refusal() { CommandError::usage(line) } else { CommandError::failed(line) }
}

fn find(route: &RouteOptions) -> CommandResult<SelectedCell> {
    let network = |name: Option<&afs_wire::ids::CellName>, servers: &[Ipv4Addr], base_port| SelectedCell {
        cell: Cell::new(servers, base_port),
        own: None,
        key_file: None,
        name: name.cloned(),
        servers: servers.to_vec(),
    };
    if !route.servers.is_empty() {
        return Ok(network(route.cell.as_ref(), &route.servers, route.base_port));
    }
    let state = running_cells::of_cell(route.state.as_deref(), route.cell.as_ref())?;
    let is_wanted = |running: &CellProcess| {
        route.cell.as_ref().is_none_or(|cell| running.cell.eq_ignore_ascii_case(cell.as_str()))
    };
    let Some(running) = state.running()?.filter(is_wanted) else {
        if route.state.is_none()
            && let Some(place) = mounted_or_logged_in(route.cell.as_ref())?
        {
            return Ok(network(Some(&place.cell), &place.servers, place.base_port));
        }
        let shown = state.path().display();
        return Err(CommandError::usage(format!(
            "no cell is running on {shown}; start one with `andrew up`, or name servers with --servers"
        )));
    };
    let IpAddr::V4(own) = running.listen else {
        return Err(CommandError::failed("vos: the cell does not listen at an IPv4 address"));
    };
    let servers = location_servers(own, running.locations);
    let name = afs_wire::ids::CellName::new(&running.cell).ok();
    let by_token = name.as_ref().map_or(Ok(false), is_without_groups)?;
    let key_file = running.key_file.unwrap_or_else(|| KeyStore::of(state.path()).path().to_owned());
    Ok(SelectedCell {
        cell: Cell::new(&servers, running.base_port),
        own: Some(own),
        key_file: Some(key_file).filter(|_| !by_token),
        name,
        servers,
    })
}

/// Location servers, that of this host first if it is one.
fn location_servers(own: Ipv4Addr, mut all: Vec<Ipv4Addr>) -> Vec<Ipv4Addr> {
    if all.is_empty() {
        return vec![own];
    }
    all.sort_by_key(|server| *server != own);
    all
}

/// The cell's own journal if it keeps one, otherwise one in files on this machine.
fn journal(route: &RouteOptions, kept: CellJournal, cell: &Cell) -> CommandResult<Arc<dyn Journal>> {
    if let Some(path) = &route.journal {
        return Ok(Arc::new(FileJournal::open(path.clone())?));
    }
    let first = cell.location.first().map(|s| s.ip().to_string()).unwrap_or_default();
    let files = StateDir::of_user()?.path().join("operations").join(first);
    Ok(Arc::new(JournalChoice::new(kept, files)))
}

fn holder() -> Holder {
    let uid = rustix::process::getuid().as_raw();
    let who = std::env::var("USER").unwrap_or_else(|_| format!("user {uid}"));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Holder { who, host, pid: std::process::id() }
}
