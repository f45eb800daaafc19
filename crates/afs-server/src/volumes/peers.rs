//! Client side towards other volume servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallError, CallOptions, ClientCall, Connection, Rx, Security, WeakRx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{
    DUMP_WITH_HOLES, Destination, DumpFormats, GetFlags, Restore, RestoreCookie, TransactionId,
};
use bytes::Bytes;

use super::{VolumeServer, errno};
use crate::flow::Sink;

/// Supplies this server's credentials towards the other servers of the cell. Called for each stream, because
/// keys change.
pub type OwnSecurity = Arc<dyn Fn() -> Security + Send + Sync>;

/// Longest silence of a peer before it counts as dead. A live one answers pings however busy its disks are.
const DEAD: Duration = Duration::from_secs(30);

pub(super) struct Peers {
    /// Weak: the transport holds the services, which hold this, so a strong handle would be a cycle.
    rx: WeakRx,
    security: OwnSecurity,
}

impl VolumeServer {
    /// Lets the server send volumes to others, with its own credentials. Call once, before the service is
    /// offered; without it calls that send are refused.
    pub fn reach_peers(&self, rx: &Rx, security: OwnSecurity) {
        let _ = self.peers.set(Peers { rx: rx.downgrade(), security });
    }

    fn peer(&self, server: &Destination) -> Result<Connection, AbortCode> {
        let peers = self.peers.get().ok_or(AbortCode::VOLSERNO_OP)?;
        let rx = peers.rx.upgrade().ok_or(AbortCode::VRESTARTING)?;
        let port = u16::try_from(server.port).map_err(|_| errno(Errno::EINVAL))?;
        let address = SocketAddr::from((server.host, port));
        let options = CallOptions { dead: Some(DEAD), hard: None };
        Ok(rx.connection(address, ServiceId::VOLUME, (peers.security)()).with_options(options))
    }

    /// Whether a peer accepts dumps with holes: one of ours says so, others do not know the call.
    pub(super) async fn takes_holes(&self, to: &Destination) -> Result<bool, AbortCode> {
        match self.peer(to)?.call(&DumpFormats {}).await {
            Ok(reply) => Ok(reply.formats & DUMP_WITH_HOLES != 0),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(false),
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

/// A dump that is being sent into another server's transaction.
pub(super) struct Delivery(ClientCall);

impl Delivery {
    pub(super) async fn begin(
        server: &VolumeServer,
        to: &Destination,
        transaction: TransactionId,
        from_date: UnixSeconds,
        cookie: RestoreCookie,
    ) -> Result<Self, AbortCode> {
        let connection = server.peer(to)?;
        let flags = i32::from(from_date.0 != 0);
        let call = connection.open(&Restore { transaction, flags, cookie }).await;
        call.map(Delivery).map_err(|error| code(&error))
    }

    /// Ends the stream and waits for the peer's result.
    pub(super) async fn finish(mut self) -> Result<(), AbortCode> {
        self.0.finish_request().map_err(|error| code(&error))?;
        self.0.finish::<Restore>().await.map_err(|error| code(&error))
    }

    /// Aborts the stream; the peer keeps nothing of it.
    pub(super) fn give_up(self, code: AbortCode) {
        self.0.abort(code);
    }
}

impl Sink for Delivery {
    type Error = AbortCode;

    async fn put(&mut self, piece: Bytes) -> Result<(), AbortCode> {
        self.0.write(piece).await.map_err(|error| code(&error))
    }
}

/// The code that reports a peer's failure to the caller of this server.
fn code(error: &CallError) -> AbortCode {
    match error {
        CallError::Abort(code) | CallError::GivenUp(code) => *code,
        CallError::Closed => AbortCode::VRESTARTING,
        CallError::Unreachable { .. } | CallError::Timeout => AbortCode::RX_CALL_DEAD,
        _ => AbortCode::VOLSERDUMPERROR,
    }
}
