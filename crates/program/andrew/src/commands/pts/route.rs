//! Route of the calls of `andrew pts`: the cell that runs here, as its owner, or protection servers on the network.

use crate::commands::auth_options::{AuthOptions, is_without_groups};
use crate::commands::login::cell_choice::mounted_or_logged_in;
use crate::commands::pts::control_call::{Failure, through_control};
use crate::commands::server_order::by_first_reply;
use crate::error::{CommandError, CommandResult};
use crate::host_names;
use crate::plain::plain;
use crate::running_cells;
use afs_cell::control::ControlClient;
use afs_cell::state::{CellProcess, StateDir};
use afs_cell::tokens::CellLocation;
use afs_net::{System, Udp};
#[cfg(test)]
use afs_rpc::Security;
use afs_rpc::{CallError, Connection};
use afs_wire::error::AbortCode;
use afs_wire::ids::CellName;
use afs_wire::rpc::{Request, ServiceId};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

/// Options that select the cell.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct RouteOptions {
    /// Protection servers of the cell, over the network [default: the cell of the state directory, as its owner, or else
    /// the one that is mounted here]
    #[arg(long, value_name = "HOST", value_parser = host_names::address, value_delimiter = ',', global = true)]
    servers: Vec<Ipv4Addr>,
    /// Name of the cell [default: the one that runs here]
    #[arg(long, value_name = "NAME", global = true)]
    cell: Option<CellName>,
    /// State directory of the cell that runs here [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR", global = true, conflicts_with = "servers")]
    state: Option<PathBuf>,
    /// Port of the cell's file servers, with --servers; the others follow from it
    #[arg(long, value_name = "PORT", default_value_t = 7000, global = true)]
    base_port: u16,
    /// Continue with the next user or group if one is refused
    #[arg(long, global = true)]
    force: bool,
    #[command(flatten)]
    auth_options: AuthOptions,
}

/// A cell that can be called.
pub(crate) struct Target {
    route: Route,
    /// Continue with the next item if one is refused.
    force: bool,
}

enum Route {
    /// The cell that runs here, as its owner.
    Owner(ControlClient),
    /// Protection servers on the network, in the order in which they are tried.
    Network { system: Arc<System>, connections: Vec<Connection>, replied: Option<SocketAddr>, _udp: Udp },
}

impl RouteOptions {
    /// The route to one cell: through the control socket in `state`, as its owner, or to its servers.
    pub(crate) fn of(place: &CellLocation, state: Option<&StateDir>) -> Self {
        match state {
            Some(state) => RouteOptions { state: Some(state.path().to_owned()), ..RouteOptions::default() },
            None => RouteOptions {
                servers: place.servers.clone(),
                cell: Some(place.cell.clone()),
                base_port: place.base_port,
                ..RouteOptions::default()
            },
        }
    }

    /// The route to a path's cell, unless options select a cell.
    pub(crate) fn or_of(self, place: Option<&CellLocation>) -> CommandResult<Self> {
        let is_said =
            !self.servers.is_empty() || self.cell.is_some() || StateDir::is_given(self.state.as_deref());
        match place {
            Some(place) if !is_said => {
                let state = running_cells::serving(place)?.map(|cell| cell.state);
                Ok(RouteOptions {
                    force: self.force,
                    auth_options: self.auth_options,
                    ..RouteOptions::of(place, state.as_ref())
                })
            }
            _ => Ok(self),
        }
    }

    /// Opens the route.
    pub(crate) fn open(&self) -> CommandResult<Target> {
        Ok(Target { route: self.route()?, force: self.force })
    }

    fn route(&self) -> CommandResult<Route> {
        if !self.servers.is_empty() {
            return self.network(self.cell.as_ref(), &self.servers, self.base_port);
        }
        let state = running_cells::of_cell(self.state.as_deref(), self.cell.as_ref())?;
        let is_wanted = |running: &CellProcess| {
            self.cell.as_ref().is_none_or(|cell| running.cell.eq_ignore_ascii_case(cell.as_str()))
        };
        if !StateDir::is_given(self.state.as_deref())
            && state.running()?.filter(is_wanted).is_none()
            && let Some(place) = mounted_or_logged_in(self.cell.as_ref())?
        {
            return self.network(Some(&place.cell), &place.servers, place.base_port);
        }
        self.owner(&state)
    }

    fn owner(&self, state: &StateDir) -> CommandResult<Route> {
        let control = ControlClient::of(state)?;
        let running = state.running()?;
        if let Some((running, cell)) = running.as_ref().and_then(named)
            && is_without_groups(&cell)?
            && let IpAddr::V4(listen) = running.listen
        {
            let servers = Some(&running.locations).filter(|all| !all.is_empty()).cloned();
            return self.network(Some(&cell), &servers.unwrap_or(vec![listen]), running.base_port);
        }
        match (&self.cell, running.map(|running| running.cell)) {
            (Some(wanted), Some(cell)) if !cell.eq_ignore_ascii_case(wanted.as_str()) => {
                Err(CommandError::usage(format!(
                    "pts: the cell running here is {cell}; for {wanted} give its protection servers with --servers"
                )))
            }
            _ => Ok(Route::Owner(control)),
        }
    }

    fn network(&self, cell: Option<&CellName>, servers: &[Ipv4Addr], base_port: u16) -> CommandResult<Route> {
        let failed = |e: std::io::Error| CommandError::failed(format!("pts: cannot open a socket: {e}"));
        let system = System::with_workers(1).map_err(|e| CommandError::failed(format!("pts: {e}")))?;
        let udp = Udp::bind(&system, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), afs_rx::Config::default())
            .map_err(failed)?;
        let port = base_port.checked_add(PROTECTION_AFTER_FILE);
        let port = port.ok_or_else(|| CommandError::usage("pts: --base-port is too large"))?;
        let security = self.auth_options.security(&system, cell, servers)?;
        let connect = |peer| udp.rx().connection(peer, ServiceId::PROTECTION, security.clone());
        let peers: Vec<SocketAddr> = servers.iter().map(|server| (*server, port).into()).collect();
        let connections = by_first_reply(&system, &udp, &peers).into_iter().map(connect).collect();
        Ok(Route::Network { system, connections, replied: None, _udp: udp })
    }
}

fn named(running: &CellProcess) -> Option<(&CellProcess, CellName)> {
    Some((running, CellName::new(&running.cell).ok()?))
}

/// Offset of the protection service's port from the file service's.
const PROTECTION_AFTER_FILE: u16 = 2;

impl Target {
    /// Calls the protection service: over the network, the first of its servers that replies.
    pub(crate) fn call<R: Request>(&mut self, request: &R) -> Result<R::Reply, Failure> {
        match &mut self.route {
            Route::Owner(control) => through_control(control, request),
            Route::Network { system, connections, replied, .. } => {
                let mut last = Failure::NoReply("no server was named".into());
                for connection in connections {
                    match system.block_on(connection.call(request)) {
                        Ok(reply) => {
                            *replied = Some(connection.peer());
                            return Ok(reply);
                        }
                        Err(CallError::Abort(code)) if !is_elsewhere(code) => {
                            return Err(Failure::Code(code));
                        }
                        Err(error) => last = Failure::NoReply(error.to_string()),
                    }
                }
                Err(last)
            }
        }
    }

    /// Name of the server that replied last.
    pub(crate) fn server(&self) -> String {
        match &self.route {
            Route::Network { replied: Some(server), .. } => format!("server {}", server.ip()),
            Route::Network { .. } | Route::Owner(_) => "the cell that runs here".into(),
        }
    }

    /// Applies an operation to each item; stops at the first failure, unless `--force` was given.
    pub(super) fn for_each<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        mut one: impl FnMut(&mut Self, T) -> CommandResult,
    ) -> CommandResult {
        let mut first = Ok(());
        for item in all {
            match one(self, item) {
                Err(error) if self.force => {
                    eprintln!("andrew: {} (ignored)", plain(&error.to_string()));
                    first = first.and(Err(error));
                }
                outcome => outcome?,
            }
        }
        // Errors were printed already; this one sets the exit status.
        first.map_err(|error| CommandError { message: "pts: some were refused".into(), ..error })
    }
}

/// Whether the error means that another server has to be tried (docs/protocol/vldb.md "8. Ubik as seen by tools and
/// clients").
fn is_elsewhere(code: AbortCode) -> bool {
    matches!(code, AbortCode::UNOQUORUM | AbortCode::UNOTSYNC)
        || code.0 < 0 && code != AbortCode::RXGEN_OPCODE
}

/// Error of a command that the service refused, in the words that scripts look for.
pub(crate) fn refused(failure: Failure, what: &str) -> CommandError {
    let reason = match failure {
        Failure::Code(AbortCode::PREXIST) => "Entry for name already exists".into(),
        Failure::Code(AbortCode::PRIDEXIST) => "Entry for id already exists".into(),
        Failure::Code(AbortCode::PRNOENT) => "User or group doesn't exist".into(),
        Failure::Code(AbortCode::PRPERM) => "Permission denied".into(),
        Failure::Code(AbortCode::PRNOIDS) => NO_IDS.into(),
        Failure::Code(AbortCode::PRBADNAM) => BAD_NAME.into(),
        Failure::Code(code) => code.meaning().map_or_else(|| code.to_string(), capitalized),
        Failure::NoReply(line) => line,
    };
    CommandError::failed(format!("pts: {reason}; {what}"))
}

/// Message where the counter of ids is at its end.
const NO_IDS: &str =
    "No id is left after the largest one; `andrew pts setmax` sets from which on the next ones are";

/// Message for an invalid name (docs/protocol/ptserver.md "5. Creation, naming, ownership").
const BAD_NAME: &str = "Not a valid name: a user's has 1 to 63 bytes without blanks and colons, and is no number; a group's is OWNER:NAME, with the name of its owner";

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
impl Target {
    /// A service at one address, called from a given socket.
    pub(super) fn at(system: Arc<System>, udp: Udp, peer: SocketAddr, force: bool) -> Self {
        let connections = vec![udp.rx().connection(peer, ServiceId::PROTECTION, Security::null())];
        Target { route: Route::Network { system, connections, replied: None, _udp: udp }, force }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_the_text_that_scripts_expect() {
        let said = |code| refused(Failure::Code(code), "unable to add user a to group b").message;
        assert_eq!(
            said(AbortCode::PRIDEXIST),
            "pts: Entry for id already exists; unable to add user a to group b"
        );
        assert_eq!(
            said(AbortCode::PRNOMORE),
            "pts: The quota of groups or users is used up; unable to add user a to group b"
        );
    }
}
