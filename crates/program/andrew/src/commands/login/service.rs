//! Calls to a cell's login service: over the network, or as the owner of the cell that runs here.

use super::cell_choice::ChosenCell;
use crate::commands::server_order::by_first_reply;
use crate::error::{CommandError, CommandResult};
use afs_cell::control::{ControlClient, ControlReply, ControlRequest};
use afs_cell::tokens::KeptToken;
use afs_login::client::{Ask, LoginError};
use afs_net::{System, Udp};
use afs_rpc::{CallError, Connection, Security};
use afs_wire::error::AbortCode;
use afs_wire::rpc::{self, Request, ServiceId};
use std::future::{Future, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;

/// Offset of the port of the protection and login services from the file service's.
const PORT_OFFSET: u16 = 2;

/// Transport for calls over the network.
pub(in crate::commands) struct Network {
    pub(in crate::commands) system: Arc<System>,
    pub(in crate::commands) udp: Udp,
}

impl Network {
    pub(in crate::commands) fn open() -> CommandResult<Self> {
        let failed = |e: std::io::Error| CommandError::failed(format!("cannot open a socket: {e}"));
        let system = System::with_workers(1).map_err(CommandError::failed)?;
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let udp = Udp::bind(&system, any, afs_rx::Config::default()).map_err(failed)?;
        Ok(Self { system, udp })
    }

    /// Runs an operation at the first of a cell's login services that replies.
    ///
    /// # Errors
    /// No service replies, or the first reply is an error.
    pub(in crate::commands) fn first<T, F>(
        &self,
        chosen: &ChosenCell,
        with: Option<&KeptToken>,
        work: impl Fn(Connection) -> F,
    ) -> Result<T, LoginError>
    where
        F: Future<Output = Result<T, LoginError>>,
    {
        let mut last = LoginError::InvalidReply("the cell has no servers");
        let port = chosen.base_port.saturating_add(PORT_OFFSET);
        let peers: Vec<SocketAddr> = chosen.servers.iter().map(|server| (*server, port).into()).collect();
        for peer in by_first_reply(&self.system, &self.udp, &peers) {
            let service = self.udp.rx().connection(peer, ServiceId::LOGIN, self.security(with));
            match self.system.block_on(work(service)) {
                Err(LoginError::Call(error)) if is_for_another(&error) => last = LoginError::Call(error),
                done => return done,
            }
        }
        Err(last)
    }

    fn security(&self, with: Option<&KeptToken>) -> Security {
        let Some(kept) = with else { return Security::null() };
        Security::new(kept.token().source(self.system.env()))
    }
}

/// Whether another server of the cell may succeed after this error.
fn is_for_another(error: &CallError) -> bool {
    error.is_silence() || error.abort_code() == Some(AbortCode::UNOQUORUM)
}

/// The login service of the cell that runs here, called as its owner.
pub(in crate::commands) struct OwnService(Mutex<ControlClient>);

impl OwnService {
    pub(in crate::commands) fn of(chosen: &ChosenCell) -> CommandResult<Option<Self>> {
        let control = chosen.state.as_ref().map(ControlClient::of).transpose()?;
        Ok(control.map(|control| Self(Mutex::new(control))))
    }
}

impl Ask for OwnService {
    fn ask<R: Request>(&self, request: &R) -> impl Future<Output = Result<R::Reply, CallError>> + Send {
        let question = ControlRequest::Call { service: R::SERVICE.0, call: rpc::encode_call(request) };
        let answer = self.0.lock().ask(&question);
        ready(match answer {
            Ok(ControlReply::Done(reply)) => rpc::decode_reply::<R>(&reply).map_err(CallError::from),
            Ok(ControlReply::Aborted(code)) => Err(CallError::Abort(AbortCode(code))),
            Ok(ControlReply::Refused(_)) | Err(_) => Err(CallError::Closed),
        })
    }
}

/// A login service, by either route.
pub(in crate::commands) enum Service {
    Own(Arc<OwnService>),
    Network(Connection),
}

impl Ask for Service {
    async fn ask<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        match self {
            Self::Own(own) => own.ask(request).await,
            Self::Network(network) => network.ask(request).await,
        }
    }
}

/// Error of a command for the refusal of a login service.
pub(in crate::commands) fn refused(chosen: &ChosenCell, error: &LoginError) -> CommandError {
    let cell = &chosen.cell;
    match error {
        LoginError::Call(CallError::Abort(AbortCode::RX_INVALID_OPERATION | AbortCode::RXGEN_OPCODE)) => {
            CommandError::failed(format!(
                "the cell {cell} has no login service; use --kerberos if it has Kerberos"
            ))
        }
        error => CommandError::failed(format!("login service of {cell}: {error}")),
    }
}
