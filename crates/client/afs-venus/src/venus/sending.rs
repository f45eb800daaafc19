//! Sending of dirty data from the cache to a server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::{SetStatus, Status, StatusReply};
use afs_wire::ids::{DataVersion, Fid};

use crate::calls::{CallOutcome, CallReply};
use crate::counters::add;
use crate::data::{FileData, Piece, StoreScope};
use crate::error::Result;
use crate::location::Volume;
use crate::transfer::{CacheSource, SourceFailure, SourceReport, StoreRequest, directory_of};
use crate::venus::Venus;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

/// Outcome of an attempt to bring the server up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The server has all data that was dirty when the attempt began.
    All,
    /// The file was truncated here meanwhile: the rest of the data does not exist any more.
    Cut,
    /// The server has another version than the base of the local data. It has nothing of this attempt.
    OtherVersion,
    /// Another client's store came in between, and the kernel uses the file by passthrough: the server's copy is a
    /// mixture, and the whole file must be sent.
    Mixed,
    /// The server does not know the call that takes several ranges.
    OldServer,
}

/// One attempt: what is sent, and its report.
pub(super) struct Sending<'a> {
    pub vnode: &'a Arc<Vnode>,
    pub volume: &'a Arc<Volume>,
    pub data: &'a Arc<FileData>,
    /// Attributes set along with the data.
    pub status: SetStatus,
    /// Number of changes of the length when the ranges were chosen.
    pub cuts: u64,
    pub report: SourceReport,
}

impl Sending<'_> {
    pub fn fid(&self) -> Fid {
        self.vnode.key.fid
    }

    /// The directory in which the file was last seen.
    fn directory(&self) -> Option<Fid> {
        self.vnode.state().status.as_ref().map(|status| directory_of(self.fid(), status))
    }

    /// Removes the checksums of ranges that the server truncates or that are about to be sent, until they are stored.
    fn forget_sums(&self, pieces: &[Piece]) {
        let kept = pieces.first().map_or(u64::MAX, |first| first.file_length);
        self.data.change_sums(|sums| {
            sums.forget(kept..u64::MAX);
            pieces.iter().for_each(|piece| sums.forget(piece.range.clone()));
        });
    }

    /// Records the checksums of a stored piece.
    pub fn note_sums(&self, piece: &Piece) {
        let new = self.report.sums();
        self.data
            .change_sums(|sums| new.within(&piece.range).for_each(|(range, sum)| sums.insert(range, sum)));
    }
}

impl Venus {
    /// Sends the dirty ranges, or if it `replaces` a version other than the base of the local data, the whole file.
    /// Changes of the length wait until it is over, unless it is a retry that no program waits for.
    pub(super) async fn send_dirty(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        replaces: Option<DataVersion>,
        reason: StoreReason,
    ) -> Result<Sent> {
        let _length = match reason {
            StoreReason::Retry => None,
            _ => Some(data.change_lock.block_cuts().await),
        };
        let as_one = self.takes_ranges(volume);
        let (pieces, scope, cut, time, cuts) = {
            let _quiet = data.change_lock.block_changes().await;
            let mut content = data.content();
            // The file may have been opened and truncated since the first check.
            if reason.defers_to_writer(&content) {
                return Ok(Sent::All);
            }
            let cut = content.cut;
            let scope = content.store_scope(replaces.is_some(), as_one);
            (content.begin_store(scope), scope, cut, content.changed_at, data.change_lock.cuts())
        };
        let fsync = reason == StoreReason::Sync;
        let status = SetStatus { mod_time: Some(time.unwrap_or(self.time())), fsync, ..SetStatus::default() };
        let mut storing = Storing { data: data.clone(), cut, any: false, end: End::Failed };
        let sending = Sending { vnode, volume, data, status, cuts, report: SourceReport::default() };
        sending.forget_sums(&pieces);
        let (length, version) = {
            let content = data.content();
            (content.length, content.version)
        };
        let sent = match as_one && !is_all(&pieces, length) {
            true => {
                let expected = replaces.unwrap_or(version);
                self.send_as_one(&sending, &pieces, expected, &mut storing.any).await
            }
            false => self.send_one_by_one(&sending, &pieces, scope, &mut storing.any).await,
        };
        let stopped = sending.report.failure();
        match (sent, stopped) {
            (Ok(Sent::All), _) => {}
            (Ok(other), _) => {
                storing.end = End::Stopped;
                return Ok(other);
            }
            (Err(_), Some(SourceFailure::Cut)) => {
                storing.end = End::Stopped;
                return Ok(Sent::Cut);
            }
            (Err(_), Some(SourceFailure::Cache(error))) => return Err(error.of(vnode.key.fid)),
            (Err(error), None) => return Err(error),
        }
        storing.end = End::Done;
        data.content().store_done();
        *data.ready.lock() = None;
        data.stored_unsynced.store(reason != StoreReason::Sync, Ordering::SeqCst);
        self.after_store(vnode, data);
        Ok(Sent::All)
    }

    /// True unless a server of the volume is known not to take several ranges in one call.
    fn takes_ranges(&self, volume: &Volume) -> bool {
        let sites = volume.sites(self.now());
        sites.iter().all(|server| self.transfer.takes_several_pieces(server))
    }

    /// Sends each piece in a call of its own; each makes a new version.
    async fn send_one_by_one(
        &self,
        sending: &Sending<'_>,
        pieces: &[Piece],
        scope: StoreScope,
        any: &mut bool,
    ) -> Result<Sent> {
        let Sending { vnode, volume, data, .. } = sending;
        for piece in pieces {
            let expected = data.content().version.next();
            let answered = self.send_piece(sending, piece).await?;
            let reply = &answered.value;
            self.promises.record_change(volume, vnode, &answered.change(&reply.status, &reply.sync));
            let is_other = reply.status.data_version != expected;
            // A piece that is the whole file leaves nothing of the other store, which may have been an earlier attempt
            // of this one.
            let is_whole = piece.range == (0..reply.status.length);
            let is_mixed = is_other && scope == StoreScope::Dirty && !is_whole;
            let is_to_be_repeated = match is_mixed {
                true => self.handle_mixed(vnode, data, (piece, &reply.status)),
                false => {
                    data.content().stored(piece, reply.status.data_version, reply.status.length);
                    false
                }
            };
            sending.note_sums(piece);
            if is_to_be_repeated {
                return Ok(Sent::Mixed);
            }
            if is_other && scope != StoreScope::Dirty && *any {
                // The first piece replaced the previous contents; this one was applied to another store's.
                data.content().mark_all_dirty();
                return Ok(Sent::OtherVersion);
            }
            *any = true;
        }
        Ok(Sent::All)
    }

    /// Handles a store by another client in between: ranges that were not sent are not what the server has, and are
    /// fetched again when needed. But if the kernel uses the file by passthrough it continues with the local contents,
    /// so all of the file becomes dirty; returns true then.
    fn handle_mixed(&self, vnode: &Vnode, data: &FileData, (piece, status): (&Piece, &Status)) -> bool {
        tracing::info!(fid = %vnode.key.fid, "two machines stored to one file at the same time");
        let mut content = data.content();
        if data.backed.load(Ordering::SeqCst) && content.is_complete() {
            content.stored(piece, status.data_version, status.length);
            content.mark_all_dirty();
            return true;
        }
        content.stored_into_another(piece, status.data_version, status.length);
        false
    }

    async fn send_piece(&self, sending: &Sending<'_>, piece: &Piece) -> Result<CallReply<StatusReply>> {
        let outcome = self.send(sending, std::slice::from_ref(piece), None).await;
        let answered = outcome.result.map_err(|error| error.of(sending.fid()))?;
        add(&self.counters.bytes_stored, piece.range.end - piece.range.start);
        Ok(answered)
    }

    /// Sends pieces as one change.
    pub(super) async fn send(
        &self,
        sending: &Sending<'_>,
        pieces: &[Piece],
        expected: Option<DataVersion>,
    ) -> CallOutcome<StatusReply> {
        let Sending { status, .. } = *sending;
        let (fid, directory) = (sending.fid(), sending.directory());
        let change = &StoreRequest { fid, directory, status, pieces, expected };
        self.on_sites(sending.volume, sending.vnode.key, change.operation(), |target| async move {
            let mut source =
                CacheSource::new(self.files.worker(), sending.data, sending.cuts, &sending.report);
            self.transfer.store(&target, change, &mut source).await
        })
        .await
    }
}

/// True if the pieces are the whole of a file of this length.
fn is_all(pieces: &[Piece], length: u64) -> bool {
    pieces.len() == 1 && pieces.iter().all(|piece| piece.range == (0..length))
}

/// How a store has ended.
enum End {
    Done,
    /// To be repeated, or left to another store.
    Stopped,
    Failed,
}

/// A store in progress. If it is abandoned, stopped or fails, what was not stored becomes dirty again.
struct Storing {
    data: Arc<FileData>,
    cut: u64,
    any: bool,
    end: End,
}

impl Drop for Storing {
    fn drop(&mut self) {
        match self.end {
            End::Done => {}
            End::Stopped => self.data.content().store_stopped(self.cut, self.any),
            End::Failed => self.data.content().store_failed(self.cut, self.any),
        }
    }
}
