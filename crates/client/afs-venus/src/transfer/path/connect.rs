//! Streams to drives: connected, TLS, the first frames; and their end when nothing is moved.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_datapath::session::{Client, Lost, Patience};
use afs_rpc::sync::Notify;
use afs_rpc::{ByteStream, EnvExt, EnvRef};

use super::fallback::{Ended, Fallback};
use super::link::Link;
use super::offer::Offer;
use super::server::Common;

/// How long a stream to one address may take to connect.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// A connection over which nothing was moved for so long is closed.
pub(super) const IDLE: Duration = Duration::from_secs(60);
/// How long a fetch waits for the drive's next step: longer than a busy disk takes, and shorter than a file server may be silent
/// before it counts as unreachable.
pub(super) const STALL: Duration = Duration::from_secs(10);
/// How long a drive is waited for; fetches wait less ([`STALL`]). A store is made by calls if the drive takes no bytes, or has
/// not made them durable, for half a minute.
pub(super) const PATIENCE: Patience = Patience {
    handshake: Duration::from_secs(5),
    alive: Duration::from_secs(15),
    silence: Duration::from_secs(45),
    stall: Duration::from_secs(30),
    idle: Duration::from_secs(600),
};

/// What a drive has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DriveContent {
    /// Files: the drive of a file server.
    Files,
    /// Chunks.
    Chunks,
}

impl Common {
    /// Tries one address after the other. Over a narrow path a stream has packets of at most so many bytes.
    pub async fn connect(
        &self,
        offer: &Offer,
        has: DriveContent,
        narrow: Option<usize>,
    ) -> Result<(Client, SocketAddr), Fallback> {
        let mut why = Fallback::Unreachable;
        for address in &offer.addresses {
            match self.connect_to(offer, *address, has, narrow).await {
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
        Err(why)
    }

    async fn connect_to(
        &self,
        offer: &Offer,
        address: SocketAddr,
        has: DriveContent,
        narrow: Option<usize>,
    ) -> Result<Client, Lost> {
        let patience = match has {
            DriveContent::Files => PATIENCE,
            DriveContent::Chunks => Patience { stall: STALL, ..PATIENCE },
        };
        let stream = self.stream(address, narrow).await?;
        let session = Client::open(self.env.clone(), stream, offer.security, patience).await?;
        if session.drive() == offer.drive {
            Ok(session)
        } else {
            Err(Lost::Key("it is another drive".into()))
        }
    }
}

impl Common {
    /// What `look` finds. While a connection is being opened it looks again at each change, but waits no longer than `wait`.
    pub async fn when_open<T>(
        &self,
        changed: &Notify,
        wait: Duration,
        look: impl Fn() -> Result<T, Ended>,
    ) -> Result<T, Ended> {
        let until = self.env.now() + wait;
        loop {
            let change = changed.notified();
            let found = look();
            let left = until.saturating_since(self.env.now());
            if !matches!(found, Err(Ended::Fallback(Fallback::Connecting)))
                || left.is_zero()
                || self.env.timeout(left, change).await.is_err()
            {
                return found;
            }
        }
    }

    async fn stream(&self, address: SocketAddr, narrow: Option<usize>) -> Result<Box<dyn ByteStream>, Lost> {
        let connecting = match narrow.map(segment) {
            Some(segment) => self.env.connect_in_segments(address, segment),
            None => self.env.connect(address),
        };
        let connecting = self.env.timeout(CONNECT_MAX, connecting);
        Ok(connecting.await.map_err(|_| Lost::Handshake)??)
    }
}

/// Bytes of a segment in an IP packet that is as large as one with so many bytes in UDP.
fn segment(datagram: usize) -> u32 {
    const UDP_HEADER: usize = 8;
    const TCP_HEADER: usize = 20;
    u32::try_from(datagram + UDP_HEADER).map_or(u32::MAX, |bytes| bytes.saturating_sub(TCP_HEADER as u32))
}

/// Looks from time to time whether a connection is to be closed, which `close` does and says. Keeps no connection.
pub(super) async fn close_when_idle(
    env: EnvRef,
    link: Weak<Link>,
    close: impl Fn(&Arc<Link>) -> bool + Send,
) {
    loop {
        env.sleep(IDLE / 2).await;
        let Some(link) = link.upgrade() else { return };
        if close(&link) {
            return;
        }
    }
}
