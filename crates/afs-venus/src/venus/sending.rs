//! Sending unsaved bytes from the cache to a server.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, SetStatus, StatusReply};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;
use bytes::Bytes;

use crate::counters::add;
use crate::data::{FileData, Piece};
use crate::error::{Result, VenusError};
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::calls::{Answered, Target};
use crate::venus::occasion::Occasion;
use crate::vnode::Vnode;

/// Bytes read from the cache before they are written to the wire.
pub(super) const PIECE: u64 = 256 << 10;

/// What came of an attempt to bring the server up to date.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The server has what was unsaved when the attempt began.
    All,
    /// The file was cut here meanwhile: the rest of what was to be sent is not there any more.
    Cut,
}

/// Why the bytes of a piece did not leave the cache.
enum Halt {
    Cut,
    Cache(VenusError),
}

/// One attempt: what is sent, and why it stopped.
struct Sending<'a> {
    data: &'a Arc<FileData>,
    /// Changes of the length that had begun when it was decided what to send.
    cuts: u64,
    halt: Mutex<Option<Halt>>,
}

impl Sending<'_> {
    /// The call ends without a reply: the server must not take what was sent so far for all of it.
    fn stop(&self, halt: Halt) -> CallError {
        *crate::lock(&self.halt) = Some(halt);
        CallError::GivenUp(AbortCode::RX_USER_ABORT)
    }
}

impl Venus {
    /// Sends what is unsaved, or with `whole` everything. A change of the length waits until it is over, unless nobody
    /// waits for the store.
    pub(super) async fn send_unsaved(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        whole: bool,
        occasion: Occasion,
    ) -> Result<Sent> {
        let _length = match occasion {
            Occasion::Again => None,
            _ => Some(data.gate.hold_length().await),
        };
        let (pieces, cut, time, cuts) = {
            let _quiet = data.gate.quiet().await;
            let mut content = data.content();
            // Somebody may have opened and cut it since that was asked first.
            if occasion.leaves_it(&content) {
                return Ok(Sent::All);
            }
            let cut = content.cut;
            (content.begin_store(whole), cut, content.changed_at, data.gate.cuts())
        };
        let fsync = occasion == Occasion::Sync;
        let status = SetStatus { mod_time: Some(time.unwrap_or(self.wall())), fsync, ..SetStatus::default() };
        let mut guard = Storing { data: data.clone(), cut, any: false, end: End::Failed };
        *crate::lock(&data.stored_sum) = None;
        let sending = Sending { data, cuts, halt: Mutex::new(None) };
        for piece in &pieces {
            let expected = data.content().version.next();
            let answered = match self.send_piece(vnode.key.fid, volume, &sending, piece, status).await {
                Ok(answered) => answered,
                Err(error) => {
                    return match crate::lock(&sending.halt).take() {
                        Some(Halt::Cut) => {
                            guard.end = End::Stopped;
                            Ok(Sent::Cut)
                        }
                        Some(Halt::Cache(error)) => Err(error.of(vnode.key.fid)),
                        None => Err(error),
                    };
                }
            };
            let reply = &answered.value;
            self.refresh(volume, vnode, &reply.status, &reply.sync);
            guard.any = true;
            data.content().stored(piece, reply.status.data_version, reply.status.length);
            if reply.status.data_version != expected && !whole {
                self.mixed(vnode, data);
            }
        }
        guard.end = End::Done;
        data.content().store_done();
        *crate::lock(&data.ready) = None;
        self.after_store(vnode, data);
        Ok(Sent::All)
    }

    /// Somebody else stored in between: what we did not send is not what the server has. It is fetched anew when wanted.
    fn mixed(&self, vnode: &Vnode, data: &FileData) {
        tracing::info!(fid = %vnode.key.fid, "two machines stored to one file at the same time");
        let mut content = data.content();
        let (version, length) = (content.version, content.base_length);
        content.version = afs_wire::ids::DataVersion(u64::MAX);
        content.rebase(version, length);
    }

    async fn send_piece(
        &self,
        fid: Fid,
        volume: &Arc<Volume>,
        sending: &Sending<'_>,
        piece: &Piece,
        status: SetStatus,
    ) -> Result<Answered<StatusReply>> {
        let tried = self
            .on_sites(volume, fs::StoreData64::NAME, |target| async move {
                self.send_piece_to(&target, fid, sending, piece, status).await
            })
            .await;
        let answered = tried.result.map_err(|error| error.of(fid))?;
        add(&self.counters.bytes_stored, piece.range.end - piece.range.start);
        Ok(answered)
    }

    async fn send_piece_to(
        &self,
        target: &Target,
        fid: Fid,
        sending: &Sending<'_>,
        piece: &Piece,
        status: SetStatus,
    ) -> std::result::Result<StatusReply, CallError> {
        let (position, length) = (piece.range.start, piece.range.end - piece.range.start);
        if !target.server.small_files_only.load(Ordering::Relaxed) {
            let request = fs::StoreData64 { fid, status, position, length, file_length: piece.file_length };
            match self.send::<fs::StoreData64>(target, &request, sending, piece).await {
                Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                    target.server.small_files_only.store(true, Ordering::Relaxed);
                }
                other => return other,
            }
        }
        let narrow = |n: u64| u32::try_from(n).map_err(|_| CallError::GivenUp(AbortCode(27)));
        let request = fs::StoreData {
            fid,
            status,
            position: narrow(position)?,
            length: narrow(length)?,
            file_length: narrow(piece.file_length)?,
        };
        self.send::<fs::StoreData>(target, &request, sending, piece).await
    }

    async fn send<R: Request<Reply = StatusReply>>(
        &self,
        target: &Target,
        request: &R,
        sending: &Sending<'_>,
        piece: &Piece,
    ) -> std::result::Result<StatusReply, CallError> {
        let data = sending.data;
        let mut call = target.connection.open(request).await?;
        let mut at = piece.range.start;
        let mut sum = 0;
        while at < piece.range.end {
            let len = (piece.range.end - at).min(PIECE) as usize;
            let bytes = match self.read_to_send(sending, piece, at, len).await {
                Ok(bytes) => bytes,
                Err(halt) => {
                    call.abort(AbortCode::RX_USER_ABORT);
                    return Err(sending.stop(halt));
                }
            };
            at += len as u64;
            sum = crc32c::crc32c_append(sum, &bytes);
            call.write(bytes).await?;
        }
        call.finish_request()?;
        let reply = call.finish::<R>().await?;
        let is_whole = piece.range == (0..reply.status.length);
        let direct = data.content().direct > 0;
        *crate::lock(&data.stored_sum) = (is_whole && direct).then_some((piece.range.end, sum));
        Ok(reply)
    }

    async fn read_to_send(
        &self,
        sending: &Sending<'_>,
        piece: &Piece,
        at: u64,
        len: usize,
    ) -> std::result::Result<Bytes, Halt> {
        let data = sending.data;
        let ready = crate::lock(&data.ready).clone();
        if let Some(bytes) = ready.filter(|bytes| piece.range == (0..bytes.len() as u64)) {
            let part = bytes.get(at as usize..at as usize + len).map(|part| bytes.slice_ref(part));
            return part.ok_or(Halt::Cut);
        }
        let file = data.file.clone();
        let bytes = self.disk(move || file.read_at(at, len)).await.map_err(Halt::Cache)?;
        match bytes.len() == len && data.gate.cuts() == sending.cuts {
            true => Ok(bytes),
            false => Err(Halt::Cut),
        }
    }
}

/// How a store under way has ended.
enum End {
    Done,
    /// It begins anew, or is left to another one.
    Stopped,
    Failed,
}

/// A store under way. Given up, stopped or failed, what was not stored is unsaved again.
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
