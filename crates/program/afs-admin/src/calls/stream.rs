//! Dumps through the tool: reading from a server, writing to one.

use std::hash::{DefaultHasher, Hasher};

use afs_rpc::{CallError, ClientCall};
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::{
    Dump, DumpByPath, DumpV2, GetSize, OMIT_UNCHANGED_DIRECTORIES, Restore, RestoreByPath, RestoreCookie,
};
use bytes::Bytes;

use super::transaction::Transaction;
use crate::error::{AdminError, AdminResult};
use crate::ops::{DumpSink, DumpSource};
use crate::{Admin, ServerPartition};

/// Bytes requested at a time.
const PIECE_MAX: usize = 256 << 10;

/// A dump that is being read into a sink.
pub(super) struct Reading<'a> {
    admin: &'a Admin,
    held: &'a Transaction,
    sink: &'a mut dyn DumpSink,
    pub(super) size: Option<u64>,
    /// Bytes that the sink has, and their digest.
    done: u64,
    digest: DefaultHasher,
}

impl Reading<'_> {
    /// Gives the next bytes to the sink.
    pub(super) async fn take(&mut self, piece: Bytes) -> AdminResult {
        self.done += piece.len() as u64;
        self.digest.write(&piece);
        self.admin.progress().bytes(self.done, self.size);
        let written = self.sink.write(piece).await;
        written.map_err(|why| AdminError::failed(self.doing(), why))
    }

    fn doing(&self) -> String {
        format!("Could not dump volume {} on {}", self.held.volume, self.held.place)
    }

    pub(super) fn failed(&self, error: CallError) -> AdminError {
        AdminError::call(self.doing(), Some(self.held.place.server), error)
    }

    /// Reads a dump from its beginning. What the sink has already is left out, if it is the same.
    async fn read(&mut self, mut call: ClientCall) -> AdminResult {
        let (before, mut seen, mut digest) = (self.done, 0, DefaultHasher::new());
        while let Some(piece) = call.read_some(PIECE_MAX).await.map_err(|error| self.failed(error))? {
            let known = usize::try_from(before - seen).unwrap_or(usize::MAX).min(piece.len());
            if known > 0 {
                digest.write(&piece[..known]);
                seen += known as u64;
                self.check(before - seen, &digest)?;
            }
            if known < piece.len() {
                self.take(piece.slice(known..)).await?;
            }
        }
        if seen == before { Ok(()) } else { Err(self.differs()) }
    }

    /// Once all that the sink had has come again, it must be the same.
    fn check(&self, left: u64, digest: &DefaultHasher) -> AdminResult {
        let is_same = left > 0 || digest.finish() == self.digest.finish();
        if is_same { Ok(()) } else { Err(self.differs()) }
    }

    fn differs(&self) -> AdminError {
        AdminError::failed(self.doing(), "the stream broke, and the volume's dump is another one now")
    }
}

/// A dump that is being written from a source.
pub(super) struct Writing<'a> {
    admin: &'a Admin,
    place: ServerPartition,
    doing: String,
    source: &'a mut dyn DumpSource,
    pub(super) size: Option<u64>,
    done: u64,
}

impl Writing<'_> {
    /// The next bytes of the source.
    pub(super) async fn next(&mut self) -> AdminResult<Option<Bytes>> {
        let next = self.source.next().await;
        next.map_err(|why| AdminError::failed(self.doing.clone(), why))
    }

    /// Begins again, if the source can.
    pub(super) async fn rewind(&mut self) -> AdminResult<bool> {
        self.done = 0;
        let rewound = self.source.rewind().await;
        rewound.map_err(|why| AdminError::failed(self.doing.clone(), why))
    }

    /// So many bytes were taken by the server's end.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.done += bytes as u64;
        self.admin.progress().bytes(self.done, self.size);
    }

    pub(super) fn failed(&self, error: CallError) -> AdminError {
        AdminError::call(self.doing.clone(), Some(self.place.server), error)
    }

    async fn write(&mut self, mut call: ClientCall) -> AdminResult {
        loop {
            match self.next().await {
                Ok(Some(piece)) => {
                    let len = piece.len();
                    call.write(piece).await.map_err(|error| self.failed(error))?;
                    self.sent(len);
                }
                Ok(None) => break,
                Err(error) => {
                    call.abort(AbortCode::RX_USER_ABORT);
                    return Err(error);
                }
            }
        }
        call.finish_request().map_err(|error| self.failed(error))?;
        call.finish::<Restore>().await.map_err(|error| self.failed(error))
    }
}

impl Admin {
    /// Reads the dump of a transaction's volume into `sink`; returns its length.
    pub(crate) async fn read_dump(
        &self,
        held: &Transaction,
        since: UnixSeconds,
        omit_directories: bool,
        sink: &mut dyn DumpSink,
    ) -> AdminResult<u64> {
        held.prove("dump").await?;
        let size = self.dump_size(held, since).await;
        let mut reading = Reading { admin: self, held, sink, size, done: 0, digest: DefaultHasher::new() };
        let flags = if omit_directories { OMIT_UNCHANGED_DIRECTORIES } else { 0 };
        let by_path = DumpByPath { transaction: held.id, from_date: since, flags };
        if self.read_by_path(held, &by_path, &mut reading).await? {
            return Ok(reading.done);
        }
        let server = held.server();
        let mut call = if omit_directories {
            server.open(&DumpV2 { transaction: held.id, from_date: since, flags }).await
        } else {
            server.open(&Dump { transaction: held.id, from_date: since }).await
        }
        .map_err(|error| reading.failed(error))?;
        call.finish_request().map_err(|error| reading.failed(error))?;
        reading.read(call).await?;
        Ok(reading.done)
    }

    /// Writes a dump into a transaction's volume; returns its length.
    pub(crate) async fn write_dump(
        &self,
        held: &Transaction,
        cookie: RestoreCookie,
        source: &mut dyn DumpSource,
    ) -> AdminResult<u64> {
        held.prove("restore").await?;
        let (place, size, flags) = (held.place, source.size(), 1);
        let doing = format!("Could not restore volume {} on {place}", held.volume);
        let mut writing = Writing { admin: self, place, doing, source, size, done: 0 };
        let by_path = RestoreByPath { transaction: held.id, flags, cookie };
        if !self.write_by_path(held, &by_path, &mut writing).await? {
            let request = Restore { transaction: held.id, flags, cookie };
            let call = held.server().open(&request).await;
            let call = call.map_err(|error| writing.failed(error))?;
            writing.write(call).await?;
        }
        Ok(writing.done)
    }

    /// Estimated length of a dump, if the server can tell.
    pub(crate) async fn dump_size(&self, held: &Transaction, since: UnixSeconds) -> Option<u64> {
        let request = GetSize { transaction: held.id, from_date: since };
        let reply: Result<_, CallError> = held.server().call(&request).await;
        reply.ok().map(|r| r.dump_size)
    }
}
