//! First contact: identification of the client behind a new Rx connection.
//!
//! The client of every Rx connection is asked for its identity once. Identity is the permanent name (UUID): a
//! known name from a new address is the same client, which keeps its promises; another name from a known
//! address is another client (docs/protocol callback.md "5.1 First contact").
//!
//! An authenticated connection may bring credentials for calls back to the client. From then on only a peer
//! that authenticates with those credentials is accepted as this client: an unauthenticated connection that
//! gives the same name belongs to another client. The one exception is a client that restarted and lost its
//! state: it brings new credentials, and no peer accepts the old ones.
//!
//! The name of a client without such credentials can be used by anyone, because the client gives it to every
//! server. A call from a new address is that client's only if its old address does not reply. While the old
//! one replies, the new one is a host of its own: promises given over it are broken there, and nothing it
//! does affects the promises of the first. With each new connection that could change this, the host that
//! holds the name is probed again: a client that was killed and restarted at another port may have called
//! before it could authenticate, and is recognised as soon as it does.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afs_rpc::{CallError, Caller, EnvExt, Identity, Security};
use afs_wire::error::AbortCode;

use super::Clients;
use super::messages::{ClientIdentity, Route};
use crate::hosts::{Host, HostIdentity, Misses, NewHost};

/// A client's identity as it gave it, and whether it was authenticated.
struct ClaimedIdentity {
    identity_reply: ClientIdentity,
    /// The security of the connection over which it was given.
    security: Option<Security>,
}

impl Clients {
    /// Identifies the caller. The calling task holds the lock of the address.
    pub(super) async fn identify(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = self.hosts.by_connection(caller.peer, caller.connection) {
            self.resume(&host).await?;
            return Ok(host);
        }
        match self.ask_caller(caller).await {
            Ok(claimed) => self.recognise(caller, claimed).await,
            Err(error) => {
                tracing::info!(peer = %caller.peer, %error, "a client does not say who it is");
                self.serve_once(caller)
            }
        }
    }

    /// Asks over the credentials of this connection; else over those that the host at this address brought
    /// before, if it still replies; else without security.
    async fn ask_caller(&self, caller: &Caller) -> Result<ClaimedIdentity, CallError> {
        let peer = caller.peer;
        if let Some(security) = offered(caller) {
            return self.ask_over(peer, Some(security)).await;
        }
        let known = self.hosts.by_peer(peer).and_then(|host| Some((host.identity(), host.callback()?)));
        if let Some((identity, security)) = known {
            let route = Route { peer, security: Some(security) };
            if self.answers(&route, identity).await {
                return self.ask_over(peer, route.security).await;
            }
        }
        self.ask_over(peer, None).await
    }

    async fn ask_over(
        &self,
        peer: SocketAddr,
        security: Option<Security>,
    ) -> Result<ClaimedIdentity, CallError> {
        let route = Route { peer, security };
        let identity_reply = self.ask(&route).await?;
        Ok(ClaimedIdentity { identity_reply, security: route.security })
    }

    async fn recognise(
        self: &Arc<Self>,
        caller: &Caller,
        claimed: ClaimedIdentity,
    ) -> Result<Arc<Host>, AbortCode> {
        let ClaimedIdentity { identity_reply, security } = claimed;
        self.unidentified.lock().forget(caller.peer);
        let (host, new) = match self.find_same(caller, identity_reply.identity, security.as_ref()).await {
            Some(host) => (host, false),
            None => (self.welcome(caller, identity_reply.identity).await?, true),
        };
        host.touch(self.now());
        host.set_translates(identity_reply.translates);
        host.set_keeps_rights(identity_reply.keeps_rights);
        host.with(|state| {
            state.alternates.clone_from(&identity_reply.alternates);
            state.callback = security.or(state.callback.take());
        });
        if caller.identity != Identity::Anonymous {
            self.hosts.mark_authenticated(&host);
        }
        self.hosts.verify(&host, caller.peer, caller.connection);
        if let Err(code) = self.resume(&host).await
            && !new
        {
            return Err(code);
        }
        Ok(host)
    }

    /// The known host that this caller is: the holder of this name elsewhere, or the host at this address.
    async fn find_same(
        &self,
        caller: &Caller,
        identity: HostIdentity,
        security: Option<&Security>,
    ) -> Option<Arc<Host>> {
        let here = self.hosts.by_peer(caller.peer);
        let same_name = here.as_ref().filter(|host| host.identity() == identity);
        let found = match self.holder_elsewhere(same_name, identity, security) {
            Some(holder_of_name) if self.is_back(&holder_of_name, caller, security).await => {
                Some(holder_of_name)
            }
            // The caller has taken its address, and starts afresh under the name: not as its previous host.
            Some(holder_of_name) if holder_of_name.is_removed() => None,
            _ => match same_name {
                Some(same) if self.is_back(same, caller, security).await => Some(same.clone()),
                _ => None,
            },
        };
        let other = here.filter(|here| found.as_ref().is_none_or(|found| !Arc::ptr_eq(found, here)));
        if let Some(other) = other {
            self.detach_address(&other, caller);
        }
        found
    }

    /// The host that holds a name at another address than the caller's, if the caller could be the same: a
    /// caller without credentials is never accepted as a host that has some.
    fn holder_elsewhere(
        &self,
        here: Option<&Arc<Host>>,
        identity: HostIdentity,
        security: Option<&Security>,
    ) -> Option<Arc<Host>> {
        let HostIdentity::Uuid(uuid) = identity else { return None };
        let holder_of_name = self.hosts.by_uuid(uuid)?;
        let Some(here) = here else { return Some(holder_of_name) };
        let could_be = security.is_some() || holder_of_name.callback().is_none();
        (could_be && !Arc::ptr_eq(here, &holder_of_name)).then_some(holder_of_name)
    }

    /// Whether the caller is a known host. Callbacks then go here, if the host no longer replies at its old
    /// address.
    async fn is_back(&self, host: &Arc<Host>, caller: &Caller, security: Option<&Security>) -> bool {
        let is_same = self.is_same(host, caller.peer, security).await;
        if is_same {
            self.leave_old_address(host, caller.peer).await;
        } else {
            tracing::info!(peer = %caller.peer, "a client uses the name of another that is still there");
            host.with(|state| state.shares_name = true);
        }
        is_same
    }

    /// Whether the peer that replies at an address is the host that holds the name it gave. A host with
    /// credentials must have authenticated with them, or must do so now; when no peer accepts the old ones,
    /// new ones replace them and the host is removed. A host without credentials has moved only if its old
    /// address does not reply.
    async fn is_same(&self, host: &Arc<Host>, peer: SocketAddr, security: Option<&Security>) -> bool {
        let (route, identity) = (Route::to(host), host.identity());
        if route.security.is_none() {
            return host.calls_from(peer) || !self.answers(&route, identity).await;
        }
        if route.security.as_ref() == security || self.answers(&route.at(peer), identity).await {
            return true;
        }
        if security.is_some() && (route.peer == peer || !self.answers(&route, identity).await) {
            self.hosts.remove(host);
        }
        false
    }

    /// Serves the first call of a caller that does not give its identity, without promises; a known host at
    /// that address is marked down. Further calls end with -1.
    fn serve_once(&self, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        let known = self.hosts.by_peer(caller.peer);
        let met = match &known {
            Some(host) => !host.mark_down(),
            None => self.unidentified.lock().meet(caller.peer),
        };
        if met {
            return Err(AbortCode::RX_CALL_DEAD);
        }
        let Some(host) = known else { return Ok(self.hosts.unlisted(caller.peer, self.now())) };
        self.hosts.verify(&host, caller.peer, caller.connection);
        Ok(host)
    }

    async fn welcome(
        self: &Arc<Self>,
        caller: &Caller,
        identity: HostIdentity,
    ) -> Result<Arc<Host>, AbortCode> {
        let is_authenticated = caller.identity != Identity::Anonymous;
        let misses = match is_authenticated {
            true => Misses::default(),
            false => self.addresses.lock().of(caller.peer.ip()),
        };
        let new_host = NewHost { identity, peer: caller.peer, is_authenticated, misses, now: self.now() };
        if let Ok(host) = self.hosts.insert(&new_host) {
            return Ok(host);
        }
        self.make_way(caller.peer.ip()).await;
        self.hosts.insert(&new_host).map_err(|_| AbortCode::VBUSY)
    }

    /// Frees an entry of a host table that is full of clients with promises, for a client of `address`: the oldest client of the network
    /// with most clients is reset and removed, if the network of `address` has fewer. It is removed without a reply, too, so that a client
    /// that takes promises under many names and ignores callbacks does not keep others out.
    async fn make_way(self: &Arc<Self>, address: IpAddr) {
        let Some(oldest) = self.hosts.to_give_way(address) else { return };
        let clients = self.clone();
        // It ends even if the caller's call does not wait for it.
        let removal = self.env.spawn_with_result(async move {
            if !oldest.is_down() {
                _ = clients.notify_reset(&oldest).await;
            }
            clients.hosts.remove(&oldest);
        });
        _ = removal.await;
    }

    /// Detaches an address that has passed to another client.
    fn detach_address(&self, host: &Arc<Host>, caller: &Caller) {
        if !self.hosts.detach(host, caller.peer) {
            self.hosts.remove(host);
        }
    }

    /// Handles a client that calls from another address than the one it is called at. With credentials it
    /// keeps the old one as long as it replies there; a new port at the same address means address
    /// translation, and the old port is dead. Without credentials the old address did not reply, or was
    /// itself a substitute for this one: breaks may have been sent where the client was not.
    async fn leave_old_address(&self, host: &Arc<Host>, peer: SocketAddr) {
        let (route, returns) = (Route::to(host), host.calls_from(peer));
        if route.peer == peer {
            return;
        }
        if route.security.is_none() {
            host.with(|state| state.reset &= !returns && !state.shares_name);
        } else if route.peer.ip() != peer.ip() && self.answers(&route, host.identity()).await {
            return;
        }
        self.hosts.detach(host, route.peer);
    }
}

/// The credentials for callbacks that the connection brought.
fn offered(caller: &Caller) -> Option<Security> {
    match &caller.identity {
        Identity::Proven(credential) => credential.callback.clone(),
        _ => None,
    }
}
