//! Calls that a file server makes to a client.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Connection, Security};
use afs_wire::cb;
use afs_wire::error::AbortCode;
use afs_wire::fs::{CallBack, Fids, Promises, capability};
use afs_wire::ids::{Fid, Uuid};
use afs_wire::rpc::{Request, ServiceId};

use super::Clients;
use crate::hosts::{ADDRESSES_MAX, Host, HostIdentity};
use crate::leases::Lease;

/// Port of a client that is known by an address alone (docs/protocol callback.md "1. Endpoint").
const CLIENT_PORT: u16 = 7001;

/// Address and security for calls to a client.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) peer: SocketAddr,
    /// `None` is rxnull.
    pub(super) security: Option<Security>,
}

impl Route {
    /// The route to a known host.
    pub(super) fn to(host: &Host) -> Self {
        let (peer, security) = host.with(|state| (state.destination, state.callback.clone()));
        Route { peer, security }
    }

    /// The same security at another address.
    pub(super) fn at(&self, peer: SocketAddr) -> Self {
        Route { peer, security: self.security.clone() }
    }
}

/// A client's reply to a request for its identity.
#[derive(Debug)]
pub(super) struct ClientIdentity {
    pub(super) identity: HostIdentity,
    /// Other addresses of the client.
    pub(super) alternates: Vec<SocketAddr>,
    /// Whether it understands translated error numbers.
    pub(super) translates: bool,
    /// Whether it drops rights at the break of [`Fid::RIGHTS`].
    pub(super) keeps_rights: bool,
}

impl Clients {
    fn connection(&self, route: &Route, hard: Duration) -> Result<Connection, CallError> {
        let rx = self.rx.upgrade().ok_or(CallError::Closed)?;
        let options = CallOptions { hard: Some(hard), ..CallOptions::default() };
        let security = route.security.clone().unwrap_or_default();
        Ok(rx.connection(route.peer, ServiceId::CALLBACK, security).with_options(options))
    }

    async fn tell<R: Request>(
        &self,
        route: &Route,
        hard: Duration,
        request: &R,
    ) -> Result<R::Reply, CallError> {
        self.connection(route, hard)?.call(request).await
    }

    /// Requests the identity of a client: with capabilities, or, of an old client, without; a client that
    /// knows neither call is nameless.
    pub(super) async fn ask(&self, route: &Route) -> Result<ClientIdentity, CallError> {
        match self.tell(route, self.timeouts.identify, &cb::TellMeAboutYourself {}).await {
            Ok(reply) => {
                let word = reply.capabilities.first().copied().unwrap_or(0);
                Ok(ClientIdentity {
                    translates: word & capability::ERROR_TRANSLATION != 0,
                    keeps_rights: word & capability::RIGHTS_BREAKS != 0,
                    ..client_identity(route.peer, &reply.addresses)
                })
            }
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => self.ask_old(route).await,
            Err(error) => Err(error),
        }
    }

    async fn ask_old(&self, route: &Route) -> Result<ClientIdentity, CallError> {
        match self.tell(route, self.timeouts.identify, &cb::WhoAreYou {}).await {
            Ok(reply) => Ok(client_identity(route.peer, &reply.addresses)),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(ClientIdentity {
                identity: HostIdentity::Nameless,
                alternates: Vec::new(),
                translates: false,
                keeps_rights: false,
            }),
            Err(error) => Err(error),
        }
    }

    /// Notifies a host that every promise of this server is void.
    pub(super) async fn notify_reset(&self, host: &Host) -> Result<(), CallError> {
        let (route, hard) = (&Route::to(host), self.timeouts.identify);
        match host.identity() {
            HostIdentity::Uuid(_) => {
                self.tell(route, hard, &cb::InitCallBackState3 { server: self.server }).await
            }
            _ => self.tell(route, hard, &cb::InitCallBackState {}).await,
        }
    }

    /// Notifies a host that up to 50 promises are broken, and waits up to `hard` for the reply.
    pub(super) async fn notify_breaks(
        &self,
        host: &Host,
        fids: &[Fid],
        hard: Duration,
    ) -> Result<(), CallError> {
        let call = cb::CallBack { fids: Fids::first_of(fids.iter().copied()), callbacks: Promises::new() };
        self.tell(&Route::to(host), hard, &call).await
    }

    /// Notifies a host that a lock which it was refused is free for it, and waits up to `hard` for the reply. Clients of
    /// other implementations take it for a broken promise.
    pub(super) async fn notify_lock_free(
        &self,
        host: &Host,
        fid: Fid,
        hard: Duration,
    ) -> Result<(), CallError> {
        let call = cb::CallBack {
            fids: Fids::first_of([fid]),
            callbacks: Promises::first_of([CallBack::LOCK_FREE]),
        };
        self.tell(&Route::to(host), hard, &call).await
    }

    /// Asks a host to send what it holds of a lease, and waits up to `hard` until it has.
    pub(super) async fn ask_back(&self, lease: &Lease, hard: Duration) -> Result<(), CallError> {
        let call = cb::RecallLease { dir: lease.dir, lease: lease.id };
        self.tell(&Route::to(&lease.host), hard, &call).await
    }

    /// Whether the peer at an address has this host's identity.
    pub(super) async fn answers(&self, route: &Route, identity: HostIdentity) -> bool {
        match identity {
            HostIdentity::Uuid(uuid) => self.has_uuid(route, uuid).await,
            _ => self.tell(route, self.timeouts.probe, &cb::Probe {}).await.is_ok(),
        }
    }

    /// Old Linux clients always reply, with a word that is zero if the name is theirs
    /// (docs/protocol callback.md "6. What clients implement").
    async fn has_uuid(&self, route: &Route, client: Uuid) -> bool {
        let probe = async {
            let mut call =
                self.connection(route, self.timeouts.probe)?.open(&cb::ProbeUuid { client }).await?;
            call.finish_request()?;
            call.read_to_end(64).await
        };
        probe.await.is_ok_and(|reply| reply.iter().all(|byte| *byte == 0))
    }
}

fn client_identity(peer: SocketAddr, said: &cb::InterfaceAddr) -> ClientIdentity {
    let mut alternates = Vec::new();
    for interface in &said.interfaces {
        let alternate = SocketAddr::new(IpAddr::V4(interface.address), CLIENT_PORT);
        let useful =
            !interface.address.is_loopback() && !interface.address.is_unspecified() && alternate != peer;
        if useful && !alternates.contains(&alternate) && alternates.len() < ADDRESSES_MAX {
            alternates.push(alternate);
        }
    }
    let identity =
        if said.uuid == Uuid([0; 16]) { HostIdentity::Nameless } else { HostIdentity::Uuid(said.uuid) };
    ClientIdentity { identity, alternates, translates: false, keeps_rights: false }
}
