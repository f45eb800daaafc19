//! Volume service calls by which a dump leaves or comes by the data path: each grants a stream, and ends with it.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::Access;
use afs_datapath::session::Failure;
use afs_rpc::future::{Either, select};
use afs_rpc::{EnvExt, Identity, ServerCall, Table};
use afs_volume::dump::DumpOptions;
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{self, StreamGrant, StreamGrantBytes, TransactionId};
use afs_wire::xdr::Encode;
use bytes::Bytes;

use super::VolumeServer;
use crate::data_path::{Begun, ComingDump, DumpPieces, OpenStream};
use crate::file::FileServer;
use crate::guard::administrators_streamed;

/// How long a stream waits for its client.
const BEGIN_MAX: Duration = Duration::from_secs(10);

type Server = Arc<VolumeServer>;

/// How a call ends: done, or with a code.
type Ended = Result<(), (ServerCall, AbortCode)>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = administrators_streamed(table, |server: Server, call, request: vol::DumpByPath| async move {
        server.dump_by_path(call, &request).await
    });
    administrators_streamed(table, |server: Server, call, request: vol::RestoreByPath| async move {
        server.restore_by_path(call, &request).await
    })
}

impl VolumeServer {
    /// Lets dumps travel by the data path of the file server beside this service. Call once, before the service is
    /// offered; without it they travel by calls.
    pub fn use_data_path(&self, files: &Arc<FileServer>) {
        let _ = self.files.set(Arc::downgrade(files));
    }

    /// The file server, if its data path is open.
    pub(super) fn path(&self) -> Option<Arc<FileServer>> {
        let files = self.files.get()?.upgrade()?;
        files.data_path.offered().map(|_| files)
    }

    /// Whether nothing is required of the way on which a volume's bytes travel: they may do so in the clear.
    pub(super) fn may_be_clear(&self, volume: &str) -> bool {
        let policy = self.guard.policy();
        policy.service_hears(ServiceId::VOLUME, &Identity::Anonymous) && policy.is_open_to_all(volume)
    }

    async fn dump_by_path(self: &Arc<Self>, mut call: ServerCall, request: &vol::DumpByPath) -> Ended {
        let id = request.transaction;
        let begun = self.begun(&mut call, id, Access::READ, "Dump").await;
        let opened = match begun {
            Ok(Begun::Wanted(opened)) => opened,
            Ok(Begun::Coming(..)) => return Err((call, AbortCode::VOLSERDUMPERROR)),
            Err(code) => return Err((call, code)),
        };
        let all_directories = request.flags & vol::OMIT_UNCHANGED_DIRECTORIES == 0;
        let options = DumpOptions { since: request.from_date, all_directories };
        let (dump, work) = match self.open_dump(id, options).await {
            Ok(dump) => dump,
            Err(code) => {
                let _ = opened.send(Err(Failure::Io));
                return Err((call, code));
            }
        };
        tracing::info!(transaction = %id, "a dump leaves by the data path");
        let (pieces, ended) = DumpPieces::new(dump);
        let _ = opened.send(Ok(Box::new(pieces)));
        match ended.await {
            Ok(Ok(())) => drop(call.finish().await),
            Ok(Err(error)) => return Err((call, self.code(work.id(), &error))),
            // The drive has dropped the dump: its client is gone.
            Err(_) => return Err((call, AbortCode::VOLSERDUMPERROR)),
        }
        Ok(())
    }

    async fn restore_by_path(self: &Arc<Self>, mut call: ServerCall, request: &vol::RestoreByPath) -> Ended {
        let vol::RestoreByPath { transaction, flags, cookie } = *request;
        let begun = self.begun(&mut call, transaction, Access::WRITE, "Restore").await;
        let (bytes, ended) = match begun {
            Ok(Begun::Coming(bytes, ended)) => (bytes, ended),
            Ok(Begun::Wanted(_)) => return Err((call, AbortCode::VOLSERREAD_DUMPERROR)),
            Err(code) => return Err((call, code)),
        };
        tracing::info!(%transaction, "a dump comes by the data path");
        let mut coming = ComingDump::new(bytes);
        let restored = self.restore(&mut coming, &vol::Restore { transaction, flags, cookie }).await;
        // The client waits for both, and believes the call.
        let _ = ended.send(restored.map_err(|_| coming.failure()));
        match restored {
            // The client is gone if this fails; the volume is restored all the same.
            Ok(()) => drop(call.finish().await),
            Err(code) => return Err((call, code)),
        }
        Ok(())
    }

    /// Grants a stream to the caller, and waits until it begins. The transaction is not held meanwhile: the caller
    /// may have found that it cannot reach the drive, and go on by calls.
    async fn begun(
        self: &Arc<Self>,
        call: &mut ServerCall,
        id: TransactionId,
        access: Access,
        procedure: &'static str,
    ) -> Result<Begun, AbortCode> {
        let (grant, mut stream) = self.grant_stream(id, access, procedure)?;
        let grant = StreamGrantBytes::new(grant.to_bytes()).map_err(|_| AbortCode::RXGEN_OPCODE)?;
        let gone = AbortCode::VOLSERREAD_DUMPERROR;
        call.write(Bytes::from(grant.to_bytes())).await.map_err(|_| gone)?;
        call.flush().map_err(|_| gone)?;
        // A client that declines gives the call up, and its channel is free at once.
        match select(self.env.timeout(BEGIN_MAX, stream.begun()), call.ended()).await {
            Either::Left(begun) => begun.ok().flatten().ok_or(gone),
            Either::Right(_) => Err(gone),
        }
    }

    /// Whoever may make the call may have the stream.
    fn grant_stream(
        self: &Arc<Self>,
        id: TransactionId,
        access: Access,
        procedure: &'static str,
    ) -> Result<(StreamGrant, OpenStream), AbortCode> {
        let work = self.enter(id, procedure)?;
        let volume = if access == Access::WRITE { work.volume_to_change()? } else { work.volume()? };
        let files = self.path().ok_or(AbortCode::RXGEN_OPCODE)?;
        if files.data_path.may_be_clear() && !self.may_be_clear(volume.header().name.as_str()) {
            return Err(AbortCode::RXGEN_OPCODE);
        }
        let granted = files.data_path.grant_stream(&self.env, (work.id(), id), access);
        granted.ok_or(AbortCode::RXGEN_OPCODE)
    }
}
