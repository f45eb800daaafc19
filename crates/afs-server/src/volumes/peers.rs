//! Other volume servers, to which this one is a client.

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

/// How a server proves to others that it is one of the cell. Asked anew for each stream, since keys change.
pub type OwnSecurity = Arc<dyn Fn() -> Security + Send + Sync>;

/// Longest silence of a peer before it counts as dead. A live one answers pings however busy its disks are.
const DEAD: Duration = Duration::from_secs(30);

pub(super) struct Peers {
    /// The transport holds the services, which hold this: a strong handle would keep all of it for ever.
    rx: WeakRx,
    security: OwnSecurity,
}

impl VolumeServer {
    /// Lets the server send volumes to others, in its own name. To be called once, before the service is offered; without
    /// it what would send is refused.
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

    /// Whether a peer takes dumps with holes: one of ours says so, and others do not know the question.
    pub(super) async fn takes_holes(&self, to: &Destination) -> Result<bool, AbortCode> {
        match self.peer(to)?.call(&DumpFormats {}).await {
            Ok(reply) => Ok(reply.formats & DUMP_WITH_HOLES != 0),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(false),
            Err(error) => Err(code(&error)),
        }
    }

    /// Whether a peer is there and knows a transaction.
    pub(super) async fn look_at_transaction(
        &self,
        to: &Destination,
        transaction: TransactionId,
    ) -> Result<(), AbortCode> {
        let connection = self.peer(to)?;
        connection.call(&GetFlags { transaction }).await.map(drop).map_err(|error| code(&error))
    }
}

/// A dump on its way into another server's transaction.
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

    /// Ends the stream and waits for what the other side makes of it.
    pub(super) async fn finish(mut self) -> Result<(), AbortCode> {
        self.0.finish_request().map_err(|error| code(&error))?;
        self.0.finish::<Restore>().await.map_err(|error| code(&error))
    }

    /// Gives the stream up; the other side keeps nothing of it.
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

/// What the caller of this server is told of a peer's failure.
fn code(error: &CallError) -> AbortCode {
    match error {
        CallError::Abort(code) | CallError::GivenUp(code) => *code,
        CallError::Closed => AbortCode::VRESTARTING,
        CallError::Unreachable { .. } | CallError::Timeout => AbortCode::RX_CALL_DEAD,
        _ => AbortCode::VOLSERDUMPERROR,
    }
}
