//! Client that makes any call a test wants, well formed or not, and replies to servers as a client must.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_net::{System, Udp};
use afs_rpc::{CallError, CallOptions, Caller as From, Connection, Security, Table};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::xdr::BoundedVec;
use bytes::Bytes;

use super::samples::Server;
use crate::live::process::seconds;

/// A client of one cell.
pub struct Caller {
    // Dropped before the system, which its socket needs to the end.
    udp: Udp,
    system: Arc<System>,
    servers: Ipv4Addr,
}

impl Caller {
    /// A client with a socket and a UUID of its own.
    ///
    /// # Panics
    /// If the socket cannot be opened.
    #[must_use]
    pub fn new(servers: Ipv4Addr, uuid: [u8; 16]) -> Self {
        let system = System::with_workers(2).unwrap_or_else(|error| panic!("no threads: {error}"));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let udp = Udp::bind(&system, address, afs_rx::Config::default());
        let udp = udp.unwrap_or_else(|error| panic!("no socket: {error}"));
        let listening = udp.rx().listen(Arc::new(callback_service(Uuid(uuid))));
        listening.unwrap_or_else(|error| panic!("no callback service: {error}"));
        Self { udp, system, servers }
    }

    /// Makes a well-formed call.
    ///
    /// # Errors
    /// The server's error, or that there was no reply within half a minute.
    pub fn call<R: Request>(&self, server: Server, request: &R) -> Result<R::Reply, CallError> {
        self.system.block_on(self.connection(server).call(request))
    }

    /// Makes a call with these bytes to a peer; returns the length of the reply.
    ///
    /// # Errors
    /// The server's error, or that there was no reply within half a minute.
    pub fn call_raw(&self, peer: SocketAddr, server: Server, body: Vec<u8>) -> Result<usize, CallError> {
        let connection = self.connection_to(peer, server);
        self.system.block_on(async move {
            let mut call = connection.begin(Bytes::from(body), true).await?;
            Ok(call.read_to_end(REPLY_MAX).await?.len())
        })
    }

    fn connection(&self, server: Server) -> Connection {
        self.connection_to(SocketAddr::from((self.servers, server.port())), server)
    }

    fn connection_to(&self, peer: SocketAddr, server: Server) -> Connection {
        let connection = self.udp.rx().connection(peer, server.service(), Security::null());
        connection.with_options(CallOptions { dead: Some(seconds(12)), hard: Some(seconds(30)) })
    }
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Caller({} of {})", self.udp.local_addr(), self.servers)
    }
}

/// Most bytes read of one reply: more than any reply to these calls has.
const REPLY_MAX: usize = 64 << 20;

/// Callback service that replies to the identity query, which file servers send to every client first, and acknowledges
/// breaks at once.
pub fn callback_service(uuid: Uuid) -> Table<Uuid> {
    identity_service(uuid).call(|_, _, _: cb::CallBack| async { Ok::<_, AbortCode>(()) })
}

/// Callback service that replies to the identity query and never to a break.
pub fn silent_callback_service(uuid: Uuid) -> Table<Uuid> {
    identity_service(uuid).call(|_, _, _: cb::CallBack| std::future::pending::<Result<(), AbortCode>>())
}

fn identity_service(uuid: Uuid) -> Table<Uuid> {
    let identity = |uuid: Arc<Uuid>| InterfaceAddr { uuid: *uuid, ..InterfaceAddr::default() };
    Table::new(ServiceId::CALLBACK, Arc::new(uuid))
        .call(move |uuid: Arc<Uuid>, _: From, _: cb::TellMeAboutYourself| async move {
            let capabilities = BoundedVec::default();
            Ok::<_, AbortCode>(cb::TellMeAboutYourselfReply { addresses: identity(uuid), capabilities })
        })
        .call(move |uuid: Arc<Uuid>, _, _: cb::WhoAreYou| async move {
            Ok::<_, AbortCode>(cb::InterfaceAddrReply { addresses: identity(uuid) })
        })
        .call(|uuid: Arc<Uuid>, _, request: cb::ProbeUuid| async move {
            if *uuid == request.client { Ok(()) } else { Err(AbortCode(1)) }
        })
        .call(|_, _, _: cb::InitCallBackState3| async { Ok::<_, AbortCode>(()) })
        .call(|_, _, _: cb::InitCallBackState| async { Ok::<_, AbortCode>(()) })
        .call(|_, _, _: cb::Probe| async { Ok::<_, AbortCode>(()) })
}
