//! First contact: whose connection is this?
//!
//! Every Rx connection is asked once. Identity is the permanent name: a known name from a new address is the same
//! client, which keeps its promises; another name from a known address is another client
//! (docs/protocol callback.md "5.1 First contact").
//!
//! A connection that proves its user may bring the means to prove who calls back. From then on the client is called back
//! with these, and only who answers with them is taken for it: a connection that proves nothing, and names the same client,
//! is another client's. The one exception is a client that began anew and lost what it had: it brings new means, and the old
//! ones are answered by nobody.
//!
//! The name of a client that brought no such means can be used by anybody, because it tells its name to everybody. A call from
//! a new address is that client's only if its old address is silent. While the old one answers, the new one is a host of its
//! own: what is promised over it is broken there, and nothing that it does touches what the first one was promised. With each
//! new connection that could change this the bearer of the name is asked again: a client that was killed and began anew at
//! another port may have called before it could prove anything, and is itself again as soon as it does.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::{CallError, Caller, Identity, Security};
use afs_wire::error::AbortCode;

use super::Clients;
use super::messages::{Introduction, Way};
use crate::hosts::{Conduct, Host, HostIdentity, Newcomer};

/// What a client said, and whether it could prove it.
struct Answer {
    said: Introduction,
    /// Over which security it was said.
    security: Option<Security>,
}

impl Clients {
    /// Finds out who calls. The caller holds the turn of the address.
    pub(super) async fn identify(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = self.hosts.by_connection(caller.peer, caller.connection) {
            self.resume(&host).await?;
            return Ok(host);
        }
        match self.ask_caller(caller).await {
            Ok(answer) => self.recognise(caller, answer).await,
            Err(error) => {
                tracing::info!(peer = %caller.peer, %error, "a client does not say who it is");
                self.serve_once(caller)
            }
        }
    }

    /// Asks with what the connection brought; else with what the host at that address had brought before, if it is still
    /// there; else without security.
    async fn ask_caller(&self, caller: &Caller) -> Result<Answer, CallError> {
        let peer = caller.peer;
        if let Some(security) = offered(caller) {
            return self.ask_over(peer, Some(security)).await;
        }
        let known = self.hosts.by_peer(peer).and_then(|host| Some((host.identity(), host.callback()?)));
        if let Some((identity, security)) = known {
            let way = Way { peer, security: Some(security) };
            if self.answers(&way, identity).await {
                return self.ask_over(peer, way.security).await;
            }
        }
        self.ask_over(peer, None).await
    }

    async fn ask_over(&self, peer: SocketAddr, security: Option<Security>) -> Result<Answer, CallError> {
        let way = Way { peer, security };
        let said = self.ask(&way).await?;
        Ok(Answer { said, security: way.security })
    }

    async fn recognise(self: &Arc<Self>, caller: &Caller, answer: Answer) -> Result<Arc<Host>, AbortCode> {
        let Answer { said, security } = answer;
        self.strangers.lock().forget(caller.peer);
        let (host, new) = match self.find_same(caller, said.identity, security.as_ref()).await {
            Some(host) => (host, false),
            None => (self.welcome(caller, said.identity)?, true),
        };
        host.touch(self.now());
        host.set_translates(said.translates);
        host.with(|state| {
            state.alternates.clone_from(&said.alternates);
            state.callback = security.or(state.callback.take());
        });
        if caller.identity != Identity::Anonymous {
            self.hosts.prove(&host);
        }
        self.hosts.verify(&host, caller.peer, caller.connection);
        if let Err(code) = self.resume(&host).await
            && !new
        {
            return Err(code);
        }
        Ok(host)
    }

    /// The host that calls, if it is known: the one that bears this name elsewhere, or the one at this address.
    async fn find_same(
        &self,
        caller: &Caller,
        identity: HostIdentity,
        security: Option<&Security>,
    ) -> Option<Arc<Host>> {
        let here = self.hosts.by_peer(caller.peer);
        let same_name = here.as_ref().filter(|host| host.identity() == identity);
        let found = match self.bearer_elsewhere(same_name, identity, security) {
            Some(bearer) if self.is_back(&bearer, caller, security).await => Some(bearer),
            // The caller has taken its place, and begins anew under the name: not as what it was called before.
            Some(bearer) if bearer.is_gone() => None,
            _ => match same_name {
                Some(same) if self.is_back(same, caller, security).await => Some(same.clone()),
                _ => None,
            },
        };
        let other = here.filter(|here| found.as_ref().is_none_or(|found| !Arc::ptr_eq(found, here)));
        if let Some(other) = other {
            self.part(&other, caller);
        }
        found
    }

    /// The bearer of a name that is in use, if it is not the one that this name leads to at the caller's address and if the
    /// caller could be the same: who brings no means is never taken for one that can be called back with proof.
    fn bearer_elsewhere(
        &self,
        here: Option<&Arc<Host>>,
        identity: HostIdentity,
        security: Option<&Security>,
    ) -> Option<Arc<Host>> {
        let HostIdentity::Uuid(uuid) = identity else { return None };
        let bearer = self.hosts.by_uuid(uuid)?;
        let Some(here) = here else { return Some(bearer) };
        let could_be = security.is_some() || bearer.callback().is_none();
        (could_be && !Arc::ptr_eq(here, &bearer)).then_some(bearer)
    }

    /// Whether a known host calls here. It is called back here then, if it has left its old address.
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

    /// Whether who answers at an address is the host that bears the name it gave. A host that can be called back with proof must
    /// have answered with it, or must answer so now; when nobody does in the old way, new means take its place and the host is
    /// forgotten. A host without means is at another address than before only if it is silent at the old one.
    async fn is_same(&self, host: &Arc<Host>, peer: SocketAddr, security: Option<&Security>) -> bool {
        let (way, identity) = (Way::to(host), host.identity());
        if way.security.is_none() {
            return host.calls_from(peer) || !self.answers(&way, identity).await;
        }
        if way.security.as_ref() == security || self.answers(&way.at(peer), identity).await {
            return true;
        }
        if security.is_some() && (way.peer == peer || !self.answers(&way, identity).await) {
            self.hosts.remove(host);
        }
        false
    }

    /// A caller that does not say who it is gets its first call answered, without promises; a host that is known is down from
    /// then on. Further calls end with -1.
    fn serve_once(&self, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        let known = self.hosts.by_peer(caller.peer);
        let met = match &known {
            Some(host) => !host.fall(),
            None => self.strangers.lock().meet(caller.peer),
        };
        if met {
            return Err(AbortCode::RX_CALL_DEAD);
        }
        let Some(host) = known else { return Ok(self.hosts.passing(caller.peer, self.now())) };
        self.hosts.verify(&host, caller.peer, caller.connection);
        Ok(host)
    }

    fn welcome(&self, caller: &Caller, identity: HostIdentity) -> Result<Arc<Host>, AbortCode> {
        let is_proven = caller.identity != Identity::Anonymous;
        let conduct = match is_proven {
            true => Conduct::default(),
            false => self.addresses.lock().of(caller.peer.ip()),
        };
        let newcomer = Newcomer { identity, peer: caller.peer, is_proven, conduct, now: self.now() };
        self.hosts.insert(&newcomer).map_err(|_| AbortCode::VBUSY)
    }

    /// The address has passed to another client.
    fn part(&self, host: &Arc<Host>, caller: &Caller) {
        if !self.hosts.detach(host, caller.peer) {
            self.hosts.remove(host);
        }
    }

    /// A client that calls from another address than it is called at. With means to prove itself it keeps the old one as long as
    /// it answers there; a new port at the same address is address translation at work, and the old one is dead. Without means
    /// the old one was silent, or was itself a substitute for this one: breaks may have gone where the client was not.
    async fn leave_old_address(&self, host: &Arc<Host>, peer: SocketAddr) {
        let (way, returns) = (Way::to(host), host.calls_from(peer));
        if way.peer == peer {
            return;
        }
        if way.security.is_none() {
            host.with(|state| state.reset &= !returns && !state.shares_name);
        } else if way.peer.ip() != peer.ip() && self.answers(&way, host.identity()).await {
            return;
        }
        self.hosts.detach(host, way.peer);
    }
}

/// What the connection brought to prove who calls back.
fn offered(caller: &Caller) -> Option<Security> {
    match &caller.identity {
        Identity::Proven(credential) => credential.callback.clone(),
        _ => None,
    }
}
