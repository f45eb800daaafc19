//! Which cell `vos` speaks to, and how a call reaches it.

use crate::commands::as_whom::AsWhom;
use crate::commands::login::place::elsewhere;
use crate::control::{Answer, ControlClient, Question};
use crate::error::{CommandError, CommandResult};
use crate::state::StateDir;
use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, Security};
use afs_wire::error::AbortCode;
use afs_wire::ids::CellName;
use afs_wire::rpc::{self, Request, ServiceId};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Which cell to speak to.
#[derive(clap::Args, Debug)]
pub(crate) struct Reach {
    /// Location servers of the cell, over the network; without this, the cell that runs on the state directory, as
    /// its owner, or else the one that is mounted here
    #[arg(long, value_name = "IP", value_delimiter = ',', global = true)]
    pub(super) servers: Vec<Ipv4Addr>,
    /// State directory of the cell that runs here [default: ~/.local/state/andrew]
    #[arg(long, value_name = "DIR", global = true, conflicts_with = "servers")]
    pub(super) state: Option<PathBuf>,
    /// Port of the cell's file servers, with --servers; the others follow from it
    #[arg(long, value_name = "PORT", default_value_t = 7000, global = true)]
    pub(super) base_port: u16,
    /// Name of the cell, with --servers, if the token is not one that was got from them
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) cell: Option<CellName>,
    #[command(flatten)]
    pub(super) whom: AsWhom,
    /// Keep the journal of operations in files of this directory, in place of the cell's own
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) journal: Option<PathBuf>,
    /// Write a line for every step, in place of a progress bar
    #[arg(long, global = true)]
    pub(super) verbose: bool,
}

/// A cell that can be called.
pub(crate) enum Target {
    /// The cell running here, as its owner; its servers' address.
    Owner {
        /// The way in.
        control: ControlClient,
        /// Address of its servers.
        listen: IpAddr,
    },
    /// A cell on the network.
    Network(Box<Network>),
}

/// Calls over the network.
pub(crate) struct Network {
    system: Arc<System>,
    udp: Udp,
    security: Security,
    servers: Vec<Ipv4Addr>,
    base_port: u16,
    connections: BTreeMap<(ServiceId, Ipv4Addr), Connection>,
}

/// Why a call gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The service refused with this code.
    Code(AbortCode),
    /// The call did not get through; a line for a person.
    Trouble(String),
}

impl Failure {
    /// As the error of a command that was doing `what`.
    pub(crate) fn during(self, what: &str) -> CommandError {
        match self {
            Self::Code(code) => CommandError::failed(format!("vos: {what}: {code}")),
            Self::Trouble(line) => CommandError::failed(format!("vos: {what}: {line}")),
        }
    }

    /// Whether the service answered with this code.
    pub(crate) fn is(&self, wanted: AbortCode) -> bool {
        matches!(self, Self::Code(code) if *code == wanted)
    }
}

impl Reach {
    /// Opens the way.
    pub(crate) fn open(&self) -> CommandResult<Target> {
        if !self.servers.is_empty() {
            return self.network(self.cell.as_ref(), &self.servers, self.base_port);
        }
        let state = StateDir::resolve(self.state.as_deref())?;
        if self.state.is_none()
            && state.running()?.is_none()
            && let Some(place) = elsewhere(self.cell.as_ref())?
        {
            return self.network(Some(&place.cell), &place.servers, place.base_port);
        }
        let control = ControlClient::of(&state)?;
        let listen = state.running()?.map_or(Ipv4Addr::LOCALHOST.into(), |r| r.listen);
        Ok(Target::Owner { control, listen })
    }

    fn network(
        &self,
        cell: Option<&CellName>,
        servers: &[Ipv4Addr],
        base_port: u16,
    ) -> CommandResult<Target> {
        let failed = |e: std::io::Error| CommandError::failed(format!("vos: cannot open a socket: {e}"));
        let system = System::with_workers(1).map_err(failed)?;
        let udp = Udp::bind(&system, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), afs_rx::Config::default());
        let security = self.whom.security(&system, cell, servers)?;
        Ok(Target::Network(Box::new(Network {
            system,
            udp: udp.map_err(failed)?,
            security,
            servers: servers.to_vec(),
            base_port,
            connections: BTreeMap::new(),
        })))
    }
}

impl Target {
    /// A call to the location service: over the network to the first of its servers that answers.
    pub(crate) fn locate<R: Request>(&mut self, request: &R) -> Result<R::Reply, Failure> {
        match self {
            Self::Owner { control, .. } => through_control(control, request),
            Self::Network(network) => {
                let mut last = Failure::Trouble("no server was named".into());
                for server in network.servers.clone() {
                    match network.call(server, request) {
                        Err(Failure::Trouble(line)) => last = Failure::Trouble(line),
                        answered => return answered,
                    }
                }
                Err(last)
            }
        }
    }

    /// A call to the volume service of one server.
    pub(crate) fn volume<R: Request>(&mut self, server: Ipv4Addr, request: &R) -> Result<R::Reply, Failure> {
        match self {
            Self::Owner { control, .. } => through_control(control, request),
            Self::Network(network) => network.call(server, request),
        }
    }

    /// The address that a server's name means: a number, or `localhost`.
    pub(crate) fn server(&self, name: &str) -> CommandResult<Ipv4Addr> {
        let named = if name == "localhost" { Ok(Ipv4Addr::LOCALHOST) } else { name.parse::<Ipv4Addr>() };
        let named = named.map_err(|_| {
            CommandError::usage(format!("vos: '{name}' is not a server; give an IPv4 address or localhost"))
        })?;
        match self.own_server() {
            Some(own) if named == own || named.is_loopback() => Ok(own),
            Some(own) => Err(CommandError::usage(format!(
                "vos: the cell running here has one server, {own}; for another cell give --servers"
            ))),
            None => Ok(named),
        }
    }

    /// The one server of the cell that runs here.
    pub(crate) fn own_server(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Owner { listen: IpAddr::V4(listen), .. } => {
                Some(if listen.is_unspecified() { Ipv4Addr::LOCALHOST } else { *listen })
            }
            _ => None,
        }
    }
}

/// A call to a service of the cell that runs here, as its owner.
pub(crate) fn through_control<R: Request>(
    control: &mut ControlClient,
    request: &R,
) -> Result<R::Reply, Failure> {
    let question = Question::Call { service: R::SERVICE.0, call: rpc::encode_call(request) };
    match control.ask(&question) {
        Ok(Answer::Done(reply)) => rpc::decode_reply::<R>(&reply)
            .map_err(|e| Failure::Trouble(format!("the answer cannot be read: {e}"))),
        Ok(Answer::Aborted(code)) => Err(Failure::Code(AbortCode(code))),
        Ok(Answer::Refused(line)) => Err(Failure::Trouble(line)),
        Err(error) => Err(Failure::Trouble(format!("the cell does not answer: {error}"))),
    }
}

impl Network {
    fn call<R: Request>(&mut self, server: Ipv4Addr, request: &R) -> Result<R::Reply, Failure> {
        let port = self.base_port + if R::SERVICE == ServiceId::VOLUME { 5 } else { 3 };
        let (rx, security) = (self.udp.rx(), &self.security);
        let connection = self
            .connections
            .entry((R::SERVICE, server))
            .or_insert_with(|| rx.connection(SocketAddr::from((server, port)), R::SERVICE, security.clone()));
        self.system.block_on(connection.call(request)).map_err(|error| match error {
            CallError::Abort(code) => Failure::Code(code),
            other => Failure::Trouble(other.to_string()),
        })
    }
}
