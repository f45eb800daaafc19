//! The way to a cell for operations that need more than single calls: over the network, with a journal.

use super::journal_files::FileJournal;
use super::progress::Bar;
use super::reach::Reach;
use crate::cell::key_store::KeyStore;
use crate::cell::security::{clock, random};
use crate::commands::as_whom::{key_ring, no_key};
use crate::commands::login::place::elsewhere;
use crate::error::{CommandError, CommandResult};
use crate::state::StateDir;
use afs_admin::journal::Holder;
use afs_admin::{Admin, AdminError, AdminResult, Cell, CellJournal, Journal, Place};
use afs_auth::rxgk::{self, Variant};
use afs_net::{System, Udp};
use afs_rpc::{Level, Security};
use afs_wire::ids::{PartitionId, VolumeId};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// A cell whose volumes can be worked on.
pub(super) struct Ops {
    system: Arc<System>,
    _udp: Udp,
    admin: Admin,
    bar: Arc<Bar>,
    /// The one server of a cell that runs here: what `localhost` means.
    own: Option<Ipv4Addr>,
}

/// Which cell, before anything is opened.
struct Found {
    cell: Cell,
    own: Option<Ipv4Addr>,
    /// The state directory of the cell that runs here: its key is used.
    state: Option<StateDir>,
    name: Option<afs_wire::ids::CellName>,
    servers: Vec<Ipv4Addr>,
}

impl Ops {
    /// Opens the way.
    pub(super) fn open(reach: &Reach, json: bool) -> CommandResult<Self> {
        let failed = |e: std::io::Error| CommandError::failed(format!("vos: cannot open a socket: {e}"));
        let system = System::with_workers(1).map_err(failed)?;
        let found = find(reach)?;
        let security = match &found.state {
            Some(state) => owner(&system, state)?,
            None => reach.whom.security(&system, found.name.as_ref(), &found.servers)?,
        };
        let udp = Udp::bind(&system, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), afs_rx::Config::default());
        let udp = udp.map_err(failed)?;
        let journal = journal(reach, &system, &udp, &security, &found.cell)?;
        let admin = Admin::new(system.env(), udp.rx().clone(), security, found.cell, journal, holder());
        let bar = Arc::new(Bar::new(json, reach.verbose));
        let admin = admin.with_progress(bar.clone());
        Ok(Self { system, _udp: udp, admin, bar, own: found.own })
    }

    /// Runs an operation to its end.
    pub(super) fn run<T, F, W>(&self, work: W) -> CommandResult<T>
    where
        W: FnOnce(Admin) -> F,
        F: Future<Output = AdminResult<T>>,
    {
        let done = self.system.block_on(work(self.admin.clone()));
        self.bar.clear();
        done.map_err(|error| told(&error))
    }

    /// The address that a server's name means.
    pub(super) fn server(&self, name: &str) -> CommandResult<Ipv4Addr> {
        if let (Some(own), "localhost" | "127.0.0.1") = (self.own, name) {
            return Ok(own);
        }
        let found = (name, 0)
            .to_socket_addrs()
            .ok()
            .and_then(|mut all| all.find_map(|a| if let IpAddr::V4(v4) = a.ip() { Some(v4) } else { None }));
        found.ok_or_else(|| {
            CommandError::usage(format!("vos: '{name}' is not a server; give its IPv4 address or its name"))
        })
    }

    /// A server and a partition. In a cell of one server, the server may be left out; so may the partition, which is the
    /// first one then.
    pub(super) fn place(
        &self,
        server: Option<&str>,
        partition: Option<&str>,
    ) -> CommandResult<Option<Place>> {
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
        Ok(Some(Place::new(server, partition)))
    }

    /// As [`Ops::place`], where one has to be given.
    pub(super) fn needed_place(&self, server: Option<&str>, partition: Option<&str>) -> CommandResult<Place> {
        let place = self.place(server, partition)?;
        place
            .or_else(|| self.own.map(|own| Place::new(own, PartitionId(0))))
            .ok_or_else(|| CommandError::usage("vos: give a server and a partition"))
    }
}

/// A partition as a person writes it.
pub(super) fn partition_id(text: &str) -> CommandResult<PartitionId> {
    text.parse().map_err(|_| {
        CommandError::usage(format!(
            "vos: could not interpret partition name '{text}'; give a letter, vicepa or /vicepa"
        ))
    })
}

/// A volume's number as a person writes it.
pub(super) fn volume_id(text: &str) -> CommandResult<VolumeId> {
    text.parse::<u32>()
        .map(VolumeId)
        .map_err(|_| CommandError::usage(format!("vos: '{text}' is not the number of a volume")))
}

/// An operation's error as the command's.
pub(super) fn told(error: &AdminError) -> CommandError {
    let line = format!("vos: {error}");
    if error.is_refusal() { CommandError::usage(line) } else { CommandError::failed(line) }
}

fn find(reach: &Reach) -> CommandResult<Found> {
    let network = |name: Option<&afs_wire::ids::CellName>, servers: &[Ipv4Addr], base_port| Found {
        cell: Cell::new(servers, base_port),
        own: None,
        state: None,
        name: name.cloned(),
        servers: servers.to_vec(),
    };
    if !reach.servers.is_empty() {
        return Ok(network(reach.cell.as_ref(), &reach.servers, reach.base_port));
    }
    let state = StateDir::resolve(reach.state.as_deref())?;
    let Some(running) = state.running()? else {
        if reach.state.is_none()
            && let Some(place) = elsewhere(reach.cell.as_ref())?
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
    let servers = vec![own];
    Ok(Found {
        cell: Cell::new(&servers, running.base_port),
        own: Some(own),
        state: Some(state),
        name: None,
        servers,
    })
}

/// Whoever may read the state directory of a cell holds its key.
fn owner(system: &Arc<System>, state: &StateDir) -> CommandResult<Security> {
    let path = KeyStore::of(state.path()).path().to_owned();
    let keys = key_ring(&path)?;
    let token = rxgk::local_token(&keys, Variant::OpenAfs, Level::Crypt, &random(system));
    let token = afs_auth::Token::Rxgk(token.ok_or_else(|| no_key(&path))?);
    Ok(Security::new(token.source(clock(system), random(system))))
}

/// The cell's own journal where it keeps one, else one in files on this machine.
fn journal(
    reach: &Reach,
    system: &Arc<System>,
    udp: &Udp,
    security: &Security,
    cell: &Cell,
) -> CommandResult<Arc<dyn Journal>> {
    let files = |path: std::path::PathBuf| -> CommandResult<Arc<dyn Journal>> {
        Ok(Arc::new(FileJournal::open(path)?))
    };
    if let Some(path) = &reach.journal {
        return files(path.clone());
    }
    let kept = CellJournal::new(system.env(), udp.rx(), security, cell);
    if system.block_on(kept.is_kept()) {
        return Ok(Arc::new(kept));
    }
    let first = cell.location.first().map(|s| s.ip().to_string()).unwrap_or_default();
    files(StateDir::resolve(None)?.path().join("operations").join(first))
}

fn holder() -> Holder {
    let uid = rustix::process::getuid().as_raw();
    let who = std::env::var("USER").unwrap_or_else(|_| format!("user {uid}"));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Holder { who, host, pid: std::process::id() }
}
