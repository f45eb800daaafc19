//! Volume service calls that read a volume as a dump.

use std::sync::Arc;

use afs_rpc::{EnvExt, ServerCall, Table};
use afs_volume::dump::{DumpOptions, VolumeDump, dump_len};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::{self, TransactionId};

use super::VolumeServer;
use super::work::Work;
use crate::flow::{Stopped, pour};
use crate::guard::{administrators, administrators_streamed, anyone};

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
    let table = anyone(table, |server: Server, _: vol::DumpFormats| async move {
        let by_path = server.path().map_or(0, |_| vol::DUMP_BY_PATH);
        Ok(vol::DumpFormatsReply { formats: vol::DUMP_WITH_HOLES | vol::DUMP_WITH_FINE_TIMES | by_path })
    });
    administrators(table, |server: Server, call: vol::GetSize| async move {
        server.size(call.transaction, call.from_date).await
    })
}

impl VolumeServer {
    /// Reads the record of every vnode, on a thread that may take its time.
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

    pub(super) async fn open_dump(
        self: &Arc<Self>,
        id: TransactionId,
        options: DumpOptions,
    ) -> Result<(VolumeDump, Work), AbortCode> {
        let work = self.enter(id, "Dump")?;
        let dump = VolumeDump::new(work.volume()?, options);
        Ok((self.prepare(&work, dump, 0).await?, work))
    }

    /// Prepares a dump for a reader that knows some formats ([`vol::DumpFormats`]).
    pub(super) async fn prepare(
        &self,
        work: &Work,
        dump: VolumeDump,
        formats: u32,
    ) -> Result<VolumeDump, AbortCode> {
        let fine = formats & vol::DUMP_WITH_FINE_TIMES != 0;
        let dump = if fine { dump.with_fine_times() } else { dump };
        if formats & vol::DUMP_WITH_HOLES != 0 {
            return Ok(dump.keeping_holes());
        }
        let prepared = self.env.run_blocking(move || dump.prepare()).await;
        let prepared = prepared.map_err(|_| AbortCode::VRESTARTING)?;
        prepared.map_err(|error| self.code(work.id(), &error))
    }

    async fn send_dump(
        self: &Arc<Self>,
        mut call: ServerCall,
        id: TransactionId,
        options: DumpOptions,
    ) -> Result<(), (ServerCall, AbortCode)> {
        // The destination of a dump is unknown: it may go to a file, and from there to any server.
        let (mut dump, work) = match self.open_dump(id, options).await {
            Ok(opened) => opened,
            Err(code) => return Err((call, code)),
        };
        match pour(&mut dump, &mut call).await {
            Ok(()) => drop(call.finish().await),
            Err(Stopped::Volume(error)) => return Err((call, self.code(work.id(), &error))),
            // The client is gone; no one is left to reply to.
            Err(Stopped::Sink(_)) => {}
        }
        Ok(())
    }
}

/// The options of a dump for another server: an incremental one omits unchanged directories (docs/protocol
/// volserver.md "5. Call semantics", Forward).
pub(super) fn forwarded(since: UnixSeconds) -> DumpOptions {
    DumpOptions { since, all_directories: false }
}
