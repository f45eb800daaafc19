//! Client in this process that calls any server, with any token.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_auth::Token;
use afs_net::{System, Udp};
use afs_rpc::{CallError, CallOptions, Security};
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;
use afs_wire::rpc::{Request, ServiceId};

use super::process::seconds;
use crate::hostile::caller::callback_service;

/// The client. It replies to servers as a client must.
pub struct RawClient {
    // Dropped before the system, which its socket needs to the end.
    udp: Udp,
    system: Arc<System>,
}

impl RawClient {
    /// A client with a socket on all addresses of the namespace of this process.
    ///
    /// # Panics
    /// If the socket cannot be opened.
    #[must_use]
    pub fn new() -> Self {
        let system = System::with_workers(2).unwrap_or_else(|error| panic!("no threads: {error}"));
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let udp = Udp::bind(&system, any, afs_rx::Config::default());
        let udp = udp.unwrap_or_else(|error| panic!("no socket: {error}"));
        let mut uuid = [0; 16];
        system.env().random(&mut uuid);
        let listening = udp.rx().listen(Arc::new(callback_service(Uuid(uuid))));
        listening.unwrap_or_else(|error| panic!("no callback service: {error}"));
        Self { udp, system }
    }

    /// Security of connections with this token.
    #[must_use]
    pub fn security(&self, token: &Token) -> Security {
        Security::new(token.source(self.system.env()))
    }

    /// Makes a call.
    ///
    /// # Errors
    /// The code of the server's refusal.
    ///
    /// # Panics
    /// If there is no reply within half a minute.
    pub fn call<R: Request>(
        &self,
        (server, service): (SocketAddr, ServiceId),
        security: &Security,
        request: &R,
    ) -> Result<R::Reply, AbortCode> {
        let connection = self.udp.rx().connection(server, service, security.clone());
        let connection =
            connection.with_options(CallOptions { dead: Some(seconds(12)), hard: Some(seconds(30)) });
        self.system.block_on(connection.call(request)).map_err(|error| refusal(server, &error))
    }
}

fn refusal(server: SocketAddr, error: &CallError) -> AbortCode {
    error.abort_code().unwrap_or_else(|| panic!("{server}: {error}"))
}

impl Default for RawClient {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for RawClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RawClient({})", self.udp.local_addr())
    }
}
