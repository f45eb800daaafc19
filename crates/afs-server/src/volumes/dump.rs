//! Reading volumes as streams.

use std::sync::Arc;

use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::dump::{DumpOptions, VolumeDump, dump_len};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::{self, TransactionId};

use super::VolumeServer;
use crate::guard::{administrators, administrators_streamed};

type Server = Arc<VolumeServer>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = administrators_streamed(table, |server: Server, call, request: vol::Dump| async move {
        let options = DumpOptions { since: request.from_date, all_directories: true };
        server.send_dump(call, request.transaction, options).await
    });
    let table = administrators_streamed(table, |server: Server, call, request: vol::DumpV2| async move {
        let all_directories = request.flags & vol::OMIT_UNCHANGED_DIRECTORIES == 0;
        let options = DumpOptions { since: request.from_date, all_directories };
        server.send_dump(call, request.transaction, options).await
    });
    administrators(table, |server: Server, call: vol::GetSize| async move {
        server.size(call.transaction, call.from_date).await
    })
}

impl VolumeServer {
    /// Looks at the record of every vnode, where that may take its time.
    async fn size(
        self: &Arc<Self>,
        id: TransactionId,
        since: UnixSeconds,
    ) -> Result<vol::GetSizeReply, AbortCode> {
        let work = self.enter(id, "GetSize")?;
        let volume = work.volume()?;
        let counted = self.env.run_blocking(move || dump_len(&volume, since)).await;
        let counted = counted.map_err(|_| AbortCode::VRESTARTING)?;
        let dump_size = counted.map_err(|error| self.code(work.id(), &error))?;
        Ok(vol::GetSizeReply { dump_size })
    }

    async fn send_dump(
        self: &Arc<Self>,
        mut call: ServerCall,
        id: TransactionId,
        options: DumpOptions,
    ) -> Result<(), (ServerCall, AbortCode)> {
        let opened =
            self.enter(id, "Dump").and_then(|work| Ok((VolumeDump::new(work.volume()?, options), work)));
        let (mut dump, work) = match opened {
            Ok(opened) => opened,
            Err(code) => return Err((call, code)),
        };
        loop {
            match dump.next().await {
                Ok(Some(piece)) => {
                    // The client is gone; nobody is left to tell.
                    if call.write(piece).await.is_err() {
                        return Ok(());
                    }
                }
                Ok(None) => break,
                Err(error) => return Err((call, self.code(work.id(), &error))),
            }
        }
        let _ = call.finish().await;
        Ok(())
    }
}

/// The options of a stream to another server: unchanged directories stay out of an incremental one
/// (docs/protocol volserver.md "5. Call semantics", Forward).
pub(super) fn forwarded(since: UnixSeconds) -> DumpOptions {
    DumpOptions { since, all_directories: false }
}
