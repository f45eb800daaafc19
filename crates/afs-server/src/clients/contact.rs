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

use std::net::SocketAddr;
use std::sync::Arc;

use afs_rpc::{CallError, Caller, Identity, Security};
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;

use super::Clients;
use super::messages::{Introduction, Way};
use crate::hosts::{Host, HostIdentity};

/// What a client said, and whether it could prove it.
struct Answer {
    said: Introduction,
    /// Over which security it was said.
    security: Option<Security>,
}

impl Clients {
    /// Finds out who calls. The caller holds the turn of the address.
    pub(super) async fn identify(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = self.hosts.by_connection(caller.peer, caller.connection)
            && host.identity() != HostIdentity::Unknown
        {
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
        let Answer { mut said, security } = answer;
        if !self.is_credible(caller.peer, said.identity, security.as_ref()).await {
            tracing::warn!(peer = %caller.peer, "a client uses the name of another and cannot prove it");
            said.identity = HostIdentity::Nameless;
        }
        let mut known = self.hosts.by_peer(caller.peer);
        if let Some(other) = known.take_if(|host| host.identity() != said.identity) {
            self.part(&other, caller);
        }
        let (host, new) = match (known, said.identity) {
            (Some(host), _) => (host, false),
            (None, HostIdentity::Uuid(uuid)) => match self.hosts.by_uuid(uuid) {
                Some(host) => {
                    self.leave_old_address(&host, caller, uuid).await;
                    (host, false)
                }
                None => (self.welcome(caller, said.identity)?, true),
            },
            (None, identity) => (self.welcome(caller, identity)?, true),
        };
        host.touch(self.now());
        host.set_translates(said.translates);
        host.with(|state| {
            state.alternates.clone_from(&said.alternates);
            state.callback = security.or(state.callback.take());
        });
        self.hosts.verify(&host, caller.peer, caller.connection);
        if let Err(code) = self.resume(&host).await
            && !new
        {
            return Err(code);
        }
        Ok(host)
    }

    /// Whether who answers at an address may be the client of that name. If that client can be called back with proof, then
    /// who wants to be it must answer in the same way, or bring proof of its own when nobody answers in the old way.
    async fn is_credible(
        &self,
        peer: SocketAddr,
        identity: HostIdentity,
        security: Option<&Security>,
    ) -> bool {
        let HostIdentity::Uuid(uuid) = identity else { return true };
        let Some(host) = self.hosts.by_uuid(uuid) else { return true };
        let way = Way::to(&host);
        if way.security.is_none() || way.security.as_ref() == security {
            return true;
        }
        if self.answers(&way.at(peer), identity).await {
            return true;
        }
        let gone = security.is_some() && (way.peer == peer || !self.answers(&way, identity).await);
        if gone {
            self.hosts.remove(&host);
        }
        gone
    }

    /// A client that does not say who it is gets its first call answered, and is down from then on.
    fn serve_once(&self, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        let known = self.hosts.by_peer(caller.peer);
        if let Some(host) = &known {
            let met = host.with(|state| std::mem::replace(&mut state.down, true));
            if met {
                return Err(AbortCode::RX_CALL_DEAD);
            }
        }
        let host = match known {
            Some(host) => host,
            None => self.welcome(caller, HostIdentity::Unknown)?,
        };
        host.with(|state| state.down = true);
        self.hosts.verify(&host, caller.peer, caller.connection);
        Ok(host)
    }

    fn welcome(&self, caller: &Caller, identity: HostIdentity) -> Result<Arc<Host>, AbortCode> {
        self.hosts.insert(identity, caller.peer, self.now()).map_err(|_| AbortCode::VBUSY)
    }

    /// The address has passed to another client.
    fn part(&self, host: &Arc<Host>, caller: &Caller) {
        if !self.hosts.detach(host, caller.peer) {
            self.hosts.remove(host);
        }
    }

    /// A client that calls from a new address keeps its old one only if it still answers there; a new port at the same
    /// address is address translation at work, and the old one is dead.
    async fn leave_old_address(&self, host: &Arc<Host>, caller: &Caller, uuid: Uuid) {
        let old = host.destination();
        let moved_port = old.ip() == caller.peer.ip();
        if moved_port || !self.answers(&Way::to(host), HostIdentity::Uuid(uuid)).await {
            self.hosts.detach(host, old);
        }
    }
}

/// What the connection brought to prove who calls back.
fn offered(caller: &Caller) -> Option<Security> {
    match &caller.identity {
        Identity::Proven(credential) => credential.callback.clone(),
        _ => None,
    }
}
