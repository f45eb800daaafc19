//! One client of a load: a socket of its own, and the security of its calls.

use super::call_security::{CallSecurity, Source, fresh, shared};
use afs_lab::load::{self, Connect, Target};
use afs_net::{System, Udp};
use afs_wire::ids::Fid;
use afs_wire::rpc::ServiceId;
use andrew::error::{CommandError, CommandResult};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A client with threads of its own. The socket is dropped before the threads.
pub(crate) struct Client {
    udp: Udp,
    source: Source,
    server: SocketAddr,
    pub(crate) system: Arc<System>,
}

impl Client {
    /// Opens a client of a file server.
    ///
    /// # Errors
    /// There is no key to call with, or the socket cannot be opened.
    pub(crate) fn open(server: SocketAddr, security: &CallSecurity) -> CommandResult<Self> {
        let failed = |e: std::io::Error| CommandError::failed(format!("bench: cannot open a socket: {e}"));
        let system = System::new().map_err(failed)?;
        let source = security.source(&system)?;
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let udp = Udp::bind(&system, any, afs_rx::Config::default()).map_err(failed)?;
        let listening = udp.rx().listen(load::callbacks(&*system.env()));
        listening.map_err(|e| CommandError::failed(format!("bench: {e}")))?;
        Ok(Self { udp, source, server, system })
    }

    /// Target of calls about a directory that share a connection.
    pub(crate) fn target(&self, directory: Fid) -> Target {
        let files = self.udp.rx().connection(self.server, ServiceId::FILE, shared(&self.source));
        Target { env: self.system.env(), files, directory }
    }

    /// Maker of connections that are not shared.
    pub(crate) fn connect(&self) -> Connect {
        let (rx, server, source) = (self.udp.rx().clone(), self.server, self.source.clone());
        Arc::new(move || rx.connection(server, ServiceId::FILE, fresh(&source)))
    }
}
