//! Relay between clients and a server machine: it passes calls both ways, and may replace what the server replies.

mod liar;

pub use liar::{Delivered, Falsify, Liar, Lie, LiePlan};

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_rpc::{BoxFuture, CallError, Rx, Security, ServerCall, Service, WeakRx};
use afs_sim::{NodeId, World};
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::net;

/// Longest request and reply that pass.
const MESSAGE_MAX: usize = 64 << 20;
/// The port of a file server, from which it calls clients back.
const FILES: u16 = 7000;

/// A machine that clients take for a server.
#[derive(Clone)]
pub struct Relay(Arc<Inner>);

struct Inner {
    world: World,
    node: NodeId,
    /// Its address, and that of the server behind it.
    address: Ipv4Addr,
    server: Ipv4Addr,
    liar: Arc<Liar>,
    /// Its endpoint as a file server, from which callbacks go to clients.
    files: Mutex<Option<WeakRx>>,
    /// For each client the endpoint that the server takes for that client.
    clients: Mutex<BTreeMap<SocketAddr, WeakRx>>,
}

impl Relay {
    /// Begins to pass the calls of services at these ports to the server at an address, for as long as the world.
    ///
    /// # Panics
    /// If an endpoint cannot be set up.
    pub fn start(
        world: &World,
        address: Ipv4Addr,
        server: Ipv4Addr,
        services: &[(ServiceId, u16)],
        liar: &Arc<Liar>,
    ) {
        let node = world.node("relay", address.into());
        let (world, liar) = (world.clone(), liar.clone());
        let (files, clients) = (Mutex::default(), Mutex::default());
        let relay = Relay(Arc::new(Inner { world, node, address, server, liar, files, clients }));
        for (service, port) in services.iter().copied() {
            let rx = relay.endpoint(port, Passed { relay: relay.clone(), service, to: To::Server(port) });
            if port == FILES {
                *relay.0.files.lock() = Some(rx.downgrade());
            }
        }
    }

    /// An endpoint that passes the calls it gets, for as long as the world.
    fn endpoint(&self, port: u16, service: Passed) -> Rx {
        let inner = &self.0;
        let rx = net::endpoint(&inner.world, inner.node, SocketAddr::new(inner.address.into(), port));
        rx.listen(Arc::new(service)).unwrap();
        net::keep(&inner.world.env(inner.node), rx.clone());
        rx
    }

    /// The endpoint from which the calls of a client go to the server.
    fn in_place_of(&self, client: SocketAddr) -> Option<Rx> {
        let mut clients = self.0.clients.lock();
        if let Some(rx) = clients.get(&client) {
            return rx.upgrade();
        }
        let port = 20_001 + clients.len() as u16;
        let service = Passed { relay: self.clone(), service: ServiceId::CALLBACK, to: To::Client(client) };
        let rx = self.endpoint(port, service);
        clients.insert(client, rx.downgrade());
        Some(rx)
    }
}

/// Where calls go on to.
#[derive(Clone, Copy)]
enum To {
    /// A port of the server, and the reply is the liar's.
    Server(u16),
    Client(SocketAddr),
}

/// One service of the relay.
struct Passed {
    relay: Relay,
    service: ServiceId,
    to: To,
}

impl Service for Passed {
    fn id(&self) -> ServiceId {
        self.service
    }

    fn serve(self: Arc<Self>, call: ServerCall) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.pass(call).await })
    }
}

impl Passed {
    async fn pass(&self, mut call: ServerCall) {
        let Ok(request) = call.read_to_end(MESSAGE_MAX).await else { return };
        let liar = match self.to {
            To::Server(_) => Some(&self.relay.0.liar),
            To::Client(_) => None,
        };
        let told = match liar.and_then(|liar| liar.refuses_unseen(self.service, &request)) {
            Some(code) => Err(code),
            None => {
                let reply = self.passed_on(call.caller().peer, request.clone()).await;
                match liar {
                    Some(liar) => liar.replies(self.service, &request, reply),
                    None => reply,
                }
            }
        };
        let is_sent = match told {
            Ok(reply) => call.write(reply).await.is_ok() && call.finish().await.is_ok(),
            Err(code) => {
                call.abort(code);
                true
            }
        };
        if let (Some(liar), true) = (liar, is_sent) {
            liar.was_sent(self.service, &request);
        }
    }

    async fn passed_on(&self, from: SocketAddr, request: Bytes) -> Result<Bytes, AbortCode> {
        let relay = &self.relay.0;
        let (rx, peer) = match self.to {
            To::Server(port) => (self.relay.in_place_of(from), SocketAddr::new(relay.server.into(), port)),
            To::Client(client) => (relay.files.lock().as_ref().and_then(WeakRx::upgrade), client),
        };
        let connection = rx.ok_or(AbortCode::RX_CALL_DEAD)?.connection(peer, self.service, Security::null());
        let reply = async {
            let mut call = connection.begin(request, true).await?;
            call.read_to_end(MESSAGE_MAX).await
        };
        reply.await.map_err(|error: CallError| match error {
            CallError::Abort(code) => code,
            _ => AbortCode::RX_CALL_DEAD,
        })
    }
}
