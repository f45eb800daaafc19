//! A dump on the way into another server's transaction, by the data path or by a call.

use std::net::IpAddr;

use afs_datapath::session::Leaving;
use afs_datapath::volume_stream::GrantedStream;
use afs_rpc::{CallError, ClientCall};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::{
    Destination, Restore, RestoreByPath, RestoreCookie, STREAM_GRANT_MAX, StreamGrant, TransactionId,
};
use afs_wire::xdr::Decode;
use bytes::Bytes;

use super::VolumeServer;
use super::peers::code;
use crate::flow::Sink;

/// Where a dump goes.
#[derive(Clone, Copy)]
pub(super) struct To<'a> {
    pub(super) server: &'a Destination,
    pub(super) transaction: TransactionId,
    pub(super) since: UnixSeconds,
    pub(super) cookie: RestoreCookie,
}

impl To<'_> {
    fn flags(&self) -> i32 {
        i32::from(self.since.0 != 0)
    }
}

/// How a dump may take the data path.
#[derive(Clone, Copy)]
pub(super) struct PathUse {
    /// Whether it may travel in the clear.
    pub(super) clear: bool,
    /// Its length; no bound if it is not known to be short.
    pub(super) bytes: u64,
}

/// Why a dump did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undelivered {
    /// The receiver's result, or that of the connection to it.
    Code(AbortCode),
    /// The stream of the data path broke, and nothing of it was kept.
    Broken,
}

/// A dump that is being sent into another server's transaction.
pub(super) enum Delivery {
    /// By the call itself.
    Call(ClientCall),
    /// By the data path; the call lasts as long as the stream.
    Path {
        call: ClientCall,
        /// None after it has failed.
        leaving: Option<Leaving>,
    },
}

impl Delivery {
    /// Begins by a call.
    pub(super) async fn by_call(server: &VolumeServer, to: To<'_>) -> Result<Self, Undelivered> {
        let request = Restore { transaction: to.transaction, flags: to.flags(), cookie: to.cookie };
        let call = server.receiver(to.server).map_err(Undelivered::Code)?.open(&request).await;
        call.map(Delivery::Call).map_err(|error| Undelivered::Code(code(&error)))
    }

    /// Begins by the data path if that can be, and else by a call.
    pub(super) async fn begin(
        server: &VolumeServer,
        to: To<'_>,
        path: Option<PathUse>,
    ) -> Result<Self, Undelivered> {
        match path {
            Some(path) => match Self::by_path(server, to, path).await {
                Some(delivery) => Ok(delivery),
                None => Self::by_call(server, to).await,
            },
            None => Self::by_call(server, to).await,
        }
    }

    async fn by_path(server: &VolumeServer, to: To<'_>, path: PathUse) -> Option<Self> {
        let request = RestoreByPath { transaction: to.transaction, flags: to.flags(), cookie: to.cookie };
        let mut call = server.receiver(to.server).ok()?.open(&request).await.ok()?;
        call.finish_request().ok()?;
        let bytes = call.read_opaque(STREAM_GRANT_MAX).await.ok()?;
        let grant = StreamGrant::from_bytes(&bytes).ok()?;
        let granted = GrantedStream::new(&grant, IpAddr::V4(to.server.host), path.clear)?;
        if path.bytes < granted.minimum_size {
            return None;
        }
        match granted.send(&server.env).await {
            Ok(leaving) => Some(Delivery::Path { call, leaving: Some(leaving) }),
            Err(error) => {
                tracing::info!(to = %to.server.host, %error, "no data path; the dump is sent by a call");
                server.path_failed(to.server);
                None
            }
        }
    }

    /// Ends the stream and waits for the peer's result.
    pub(super) async fn finish(self) -> Result<(), Undelivered> {
        match self {
            Delivery::Call(mut call) => {
                call.finish_request().map_err(|error| Undelivered::Code(code(&error)))?;
                call.finish::<Restore>().await.map_err(|error| Undelivered::Code(code(&error)))
            }
            Delivery::Path { call, leaving } => {
                let sent = match leaving {
                    Some(leaving) => leaving.finish().await.is_ok(),
                    None => false,
                };
                result(call, sent).await
            }
        }
    }

    /// Aborts the stream; the peer keeps nothing of it.
    pub(super) fn give_up(self, code: AbortCode) {
        match self {
            Delivery::Call(call) => call.abort(code),
            Delivery::Path { call, leaving } => {
                drop(leaving);
                call.abort(code);
            }
        }
    }
}

/// What became of a dump at its receiver, which tells so by the call, whether or not the stream was whole. Waits until the
/// receiver has let go of the stream: then another one may follow.
async fn result(mut call: ClientCall, is_sent: bool) -> Result<(), Undelivered> {
    match call.read_to_end(0).await {
        Ok(_) => Ok(()),
        Err(CallError::Abort(AbortCode::VOLSERREAD_DUMPERROR)) if !is_sent => Err(Undelivered::Broken),
        Err(error) => Err(Undelivered::Code(code(&error))),
    }
}

impl Sink for Delivery {
    type Error = Undelivered;

    /// After [`Undelivered::Broken`] it is [`Delivery::finish`] that tells why.
    async fn put(&mut self, piece: Bytes) -> Result<(), Undelivered> {
        match self {
            Delivery::Call(call) => call.write(piece).await.map_err(|error| Undelivered::Code(code(&error))),
            Delivery::Path { leaving, .. } => {
                let Some(sending) = leaving else { return Err(Undelivered::Broken) };
                let put = sending.put(piece).await;
                put.map_err(|error| {
                    tracing::info!(%error, "a dump by the data path broke");
                    *leaving = None;
                    Undelivered::Broken
                })
            }
        }
    }
}
