//! First contact: whose connection is this?
//!
//! Every Rx connection is asked once. Identity is the permanent name: a known name from a new address is the same
//! client, which keeps its promises; another name from a known address is another client
//! (docs/protocol callback.md "5.1 First contact").

use std::sync::Arc;

use afs_rpc::Caller;
use afs_wire::error::AbortCode;
use afs_wire::ids::Uuid;

use super::Clients;
use super::messages::Introduction;
use crate::hosts::{Host, HostIdentity};

impl Clients {
    /// Finds out who calls. The caller holds the turn of the address.
    pub(super) async fn identify(self: &Arc<Self>, caller: &Caller) -> Result<Arc<Host>, AbortCode> {
        if let Some(host) = self.hosts.by_connection(caller.peer, caller.connection)
            && host.identity() != HostIdentity::Unknown
        {
            self.resume(&host).await?;
            return Ok(host);
        }
        match self.ask(caller.peer).await {
            Ok(said) => self.recognise(caller, &said).await,
            Err(error) => {
                tracing::info!(peer = %caller.peer, %error, "a client does not say who it is");
                self.serve_once(caller)
            }
        }
    }

    async fn recognise(
        self: &Arc<Self>,
        caller: &Caller,
        said: &Introduction,
    ) -> Result<Arc<Host>, AbortCode> {
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
        host.with(|state| state.alternates.clone_from(&said.alternates));
        self.hosts.verify(&host, caller.peer, caller.connection);
        if let Err(code) = self.resume(&host).await
            && !new
        {
            return Err(code);
        }
        Ok(host)
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
        if moved_port || !self.answers(old, HostIdentity::Uuid(uuid)).await {
            self.hosts.detach(host, old);
        }
    }
}
