//! Client side towards other volume servers.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, Connection, Instant, Rx, Security, WeakRx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{Destination, DumpFormats, GetFlags, TransactionId};
use parking_lot::Mutex;

use super::{VolumeServer, errno};

/// Supplies this server's credentials towards the other servers of the cell. Called for each stream, because
/// keys change.
pub type OwnSecurity = Arc<dyn Fn() -> Security + Send + Sync>;

/// Longest silence of a peer before it counts as dead. A live one answers pings however busy its disks are.
const DEAD: Duration = Duration::from_secs(30);

/// How long the begin of a request is sent again that has the number of a peer's transaction. With the times of the tool that has proven it
/// (`afs_admin`), shorter than a restart and the assignment of as many numbers.
const REPEATED: Duration = Duration::from_millis(500);

/// How long the data path of a peer is left alone after it failed.
const PAUSE: Duration = Duration::from_secs(60);
/// Most peers for which that is noted. That of another one is tried again at once.
const PAUSES_MAX: usize = 256;

/// The peers whose data path failed, and until when it is left alone.
#[derive(Default)]
struct Pauses(Mutex<BTreeMap<Ipv4Addr, Instant>>);

impl Pauses {
    fn note(&self, peer: Ipv4Addr, now: Instant) {
        let mut pauses = self.0.lock();
        pauses.retain(|_, until| now < *until);
        if pauses.len() < PAUSES_MAX {
            pauses.insert(peer, now + PAUSE);
        }
    }

    fn has(&self, peer: Ipv4Addr, now: Instant) -> bool {
        self.0.lock().get(&peer).is_some_and(|until| now < *until)
    }
}

pub(super) struct Peers {
    /// Weak: the transport holds the services, which hold this, so a strong handle would be a cycle.
    rx: WeakRx,
    security: OwnSecurity,
    pauses: Pauses,
}

impl VolumeServer {
    /// Lets the server send volumes to others, with its own credentials. Call once, before the service is
    /// offered; without it calls that send are refused.
    pub fn reach_peers(&self, rx: &Rx, security: OwnSecurity) {
        let _ = self.peers.set(Peers { rx: rx.downgrade(), security, pauses: Pauses::default() });
    }

    pub(super) fn peer(&self, server: &Destination) -> Result<Connection, AbortCode> {
        let peers = self.peers.get().ok_or(AbortCode::VOLSERNO_OP)?;
        let rx = peers.rx.upgrade().ok_or(AbortCode::VRESTARTING)?;
        let port = u16::try_from(server.port).map_err(|_| errno(Errno::EINVAL))?;
        let address = SocketAddr::from((server.host, port));
        let options = CallOptions { dead: Some(DEAD), hard: None };
        Ok(rx.connection(address, ServiceId::VOLUME, (peers.security)()).with_options(options))
    }

    /// A peer, for calls with the number of a transaction there, which is another's after a restart.
    pub(super) fn receiver(&self, server: &Destination) -> Result<Connection, AbortCode> {
        Ok(self.peer(server)?.repeating_for(REPEATED))
    }

    /// Notes that the data path of a peer failed.
    pub(super) fn path_failed(&self, to: &Destination) {
        if let Some(peers) = self.peers.get() {
            peers.pauses.note(to.host, self.env.now());
        }
    }

    /// Whether the data path of a peer failed a moment ago.
    pub(super) fn is_pausing(&self, to: &Destination) -> bool {
        self.peers.get().is_some_and(|peers| peers.pauses.has(to.host, self.env.now()))
    }

    /// What dumps a peer accepts beyond those of AFS, as bits: one of ours says so, others do not know the call.
    pub(super) async fn formats(&self, to: &Destination) -> Result<u32, AbortCode> {
        match self.peer(to)?.call(&DumpFormats {}).await {
            Ok(reply) => Ok(reply.formats),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(0),
            Err(error) => Err(code(&error)),
        }
    }

    /// Whether a peer is reachable and knows a transaction.
    pub(super) async fn look_at_transaction(
        &self,
        to: &Destination,
        transaction: TransactionId,
    ) -> Result<(), AbortCode> {
        let connection = self.peer(to)?;
        connection.call(&GetFlags { transaction }).await.map(drop).map_err(|error| code(&error))
    }
}

/// The code that reports a peer's failure to the caller of this server.
pub(super) fn code(error: &CallError) -> AbortCode {
    match error {
        CallError::Abort(code) | CallError::GivenUp(code) => *code,
        CallError::Closed => AbortCode::VRESTARTING,
        CallError::Unreachable { .. } | CallError::Timeout => AbortCode::RX_CALL_DEAD,
        _ => AbortCode::VOLSERDUMPERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_bounded_and_end() {
        let pauses = Pauses::default();
        let peer = |n: usize| Ipv4Addr::from_bits(n as u32);
        (0..2 * PAUSES_MAX).for_each(|n| pauses.note(peer(n), Instant::ZERO));
        assert_eq!(pauses.0.lock().len(), PAUSES_MAX);
        assert!(pauses.has(peer(0), Instant::ZERO) && !pauses.has(peer(PAUSES_MAX), Instant::ZERO));
        pauses.note(peer(PAUSES_MAX), Instant::ZERO + PAUSE);
        assert_eq!(pauses.0.lock().len(), 1, "the others are over");
    }
}
