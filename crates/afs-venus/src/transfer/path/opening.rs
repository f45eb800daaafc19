//! Opening and closing of a connection: DataPath by Rx, a stream, TLS, the first frames; all of it in the background.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_datapath::session::{Client, Lost, Patience};
use afs_rpc::{CallError, EnvExt, EnvRef};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::rpc::Request;

use super::fallback::Fallback;
use super::link::Link;
use super::offer::Offer;
use super::server::ServerPath;
use crate::calls::Target;

/// How long the calls DataPath and GetCapability may take.
pub(super) const CALL_MAX: Duration = Duration::from_secs(10);
/// How long a stream to one address may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A connection over which nothing was moved for so long is closed.
const IDLE: Duration = Duration::from_secs(60);
/// How long a drive is waited for; fetches wait less ([`super::fetch`]). A store is made by calls if the drive takes no bytes, or has
/// not made them durable, for half a minute.
pub(super) const PATIENCE: Patience = Patience {
    handshake: Duration::from_secs(5),
    alive: Duration::from_secs(15),
    silence: Duration::from_secs(45),
    stall: Duration::from_secs(30),
    idle: Duration::from_secs(600),
};

impl ServerPath {
    /// Opens a connection for the token of a target, unless one is open that serves it.
    pub(super) async fn open(self: Arc<Self>, target: &Target) {
        match self.try_open(target).await {
            Ok(link) => self.opened(target.token, link),
            Err(why) => self.not_opened(target.token, why),
        }
    }

    async fn try_open(self: &Arc<Self>, target: &Target) -> Result<Arc<Link>, Option<Fallback>> {
        let offer = self.ask(target).await?;
        if let Some(link) = self.link_of(&offer) {
            return Ok(link);
        }
        let (session, address) = self.connect(&offer).await?;
        crate::counters::count(&self.common.counters.path_connections);
        tracing::info!(server = %target.address.peer, drive = %address, "the data path is open");
        let link = Arc::new(Link::new(offer, session, self.now()));
        let watch = close_when_idle(self.common.env.clone(), Arc::downgrade(self), Arc::downgrade(&link));
        self.common.env.spawn(Box::pin(watch));
        Ok(link)
    }

    async fn ask(&self, target: &Target) -> Result<Offer, Option<Fallback>> {
        self.common.counters.call(fs::DataPath::NAME);
        let reset = self.server.reset.get();
        let call = target.connection.call(&fs::DataPath {});
        match self.common.env.timeout(CALL_MAX, call).await {
            Ok(Ok(reply)) => {
                let offer = Offer::new(&reply, target.address.peer, &self.common.config);
                offer.ok_or(Some(Fallback::Unreachable))
            }
            Ok(Err(CallError::Abort(AbortCode::RXGEN_OPCODE))) => {
                self.server.no_data_path.note(self.now(), reset);
                Err(None)
            }
            _ => Err(Some(Fallback::Unreachable)),
        }
    }

    /// Tries one address after the other.
    async fn connect(&self, offer: &Offer) -> Result<(Client, SocketAddr), Option<Fallback>> {
        let mut why = Fallback::Unreachable;
        for address in &offer.addresses {
            match self.connect_to(offer, *address).await {
                Ok(session) => return Ok((session, *address)),
                Err(Lost::Key(error)) => {
                    tracing::warn!(
                        drive = %address, error,
                        "the data path leads to a drive that cannot prove the key which the file server told; it is not used"
                    );
                    why = Fallback::WrongKey;
                }
                Err(error) => tracing::debug!(drive = %address, %error, "no connection of the data path"),
            }
        }
        Err(Some(why))
    }

    async fn connect_to(&self, offer: &Offer, address: SocketAddr) -> Result<Client, Lost> {
        let env = &self.common.env;
        let stream = env.timeout(CONNECT_MAX, env.connect(address)).await.map_err(|_| Lost::Handshake)??;
        let session = Client::open(env.clone(), stream, offer.security, PATIENCE).await?;
        if session.drive() == offer.drive {
            Ok(session)
        } else {
            Err(Lost::Key("it is another drive".into()))
        }
    }
}

/// Keeps neither the connection nor the path.
async fn close_when_idle(env: EnvRef, path: Weak<ServerPath>, link: Weak<Link>) {
    loop {
        env.sleep(IDLE / 2).await;
        let (Some(path), Some(link)) = (path.upgrade(), link.upgrade()) else { return };
        if path.close_idle(&link, IDLE) {
            return;
        }
    }
}
