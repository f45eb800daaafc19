//! Dumps through the tool: reading from a server, writing to one.

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::{Dump, DumpV2, GetSize, OMIT_UNCHANGED_DIRECTORIES, Restore, RestoreCookie};

use super::transaction::Transaction;
use crate::Admin;
use crate::error::{AdminError, AdminResult};
use crate::ops::{DumpSink, DumpSource};

/// Bytes requested at a time.
const PIECE_MAX: usize = 256 << 10;

impl Admin {
    /// Reads the dump of a transaction's volume into `sink`; returns its length.
    pub(crate) async fn read_dump(
        &self,
        held: &Transaction,
        since: UnixSeconds,
        omit_directories: bool,
        sink: &mut dyn DumpSink,
    ) -> AdminResult<u64> {
        let doing = || format!("Could not dump volume {} on {}", held.volume, held.place);
        let failed = |error| AdminError::call(doing(), Some(held.place.server), error);
        held.prove("dump").await?;
        let size = self.dump_size(held, since).await;
        let server = self.volume_server(held.place.server);
        let mut call = if omit_directories {
            let flags = OMIT_UNCHANGED_DIRECTORIES;
            server.open(&DumpV2 { transaction: held.id, from_date: since, flags }).await
        } else {
            server.open(&Dump { transaction: held.id, from_date: since }).await
        }
        .map_err(failed)?;
        call.finish_request().map_err(failed)?;
        let mut done = 0u64;
        while let Some(piece) = call.read_some(PIECE_MAX).await.map_err(failed)? {
            done += piece.len() as u64;
            self.progress().bytes(done, size);
            sink.write(piece).await.map_err(|why| AdminError::failed(doing(), why))?;
        }
        Ok(done)
    }

    /// Writes a dump into a transaction's volume; returns its length.
    pub(crate) async fn write_dump(
        &self,
        held: &Transaction,
        cookie: RestoreCookie,
        source: &mut dyn DumpSource,
    ) -> AdminResult<u64> {
        let doing = || format!("Could not restore volume {} on {}", held.volume, held.place);
        let failed = |error| AdminError::call(doing(), Some(held.place.server), error);
        held.prove("restore").await?;
        let request = Restore { transaction: held.id, flags: 1, cookie };
        let size = source.size();
        let mut call = self.volume_server(held.place.server).open(&request).await.map_err(failed)?;
        let mut done = 0u64;
        loop {
            let piece = match source.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => break,
                Err(why) => {
                    call.abort(AbortCode::RX_USER_ABORT);
                    return Err(AdminError::failed(doing(), why));
                }
            };
            done += piece.len() as u64;
            call.write(piece).await.map_err(failed)?;
            self.progress().bytes(done, size);
        }
        call.finish_request().map_err(failed)?;
        call.finish::<Restore>().await.map_err(failed)?;
        Ok(done)
    }

    /// Estimated length of a dump, if the server can tell.
    pub(crate) async fn dump_size(&self, held: &Transaction, since: UnixSeconds) -> Option<u64> {
        let request = GetSize { transaction: held.id, from_date: since };
        let reply: Result<_, CallError> = self.at(held.place.server, &request).await;
        reply.ok().map(|r| r.dump_size)
    }
}
