//! Fetch of file data in chunks.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::CallError;
use afs_wire::fs::{self, FetchDataReply};
use afs_wire::ids::Fid;

use crate::calls::CallReply;
use crate::counters::{add, count};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::Key;
use crate::location::Volume;
use crate::transfer::{CacheSink, FETCH, Fetched, MemorySink, Received, SinkReport, Wanted, directory_of};
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Limit of fetches in a row that bring nothing, because the server replies with an older version than it has reported.
const STALE_REPLIES_MAX: u32 = 16;
/// Unit of what is fetched of a file that is not here, in bytes.
const PAGE: u64 = 4096;
/// Limit of restarts of a read because the file changed at the server.
pub(super) const VERSIONS_MAX: u32 = 16;

impl Venus {
    /// Fetches something that fits in memory: a directory, or the text of a link.
    pub(super) async fn fetch_small(
        &self,
        volume: &Arc<Volume>,
        fid: Fid,
        max: u64,
    ) -> Result<CallReply<(Vec<u8>, FetchDataReply)>> {
        self.send_first(volume, Some(&[Key::new(volume.cell, fid)])).await?;
        self.fetch_small_as_it_is(volume, fid, max).await
    }

    /// The same as the server has it, without what was decided under leases.
    pub(super) async fn fetch_small_as_it_is(
        &self,
        volume: &Arc<Volume>,
        fid: Fid,
        max: u64,
    ) -> Result<CallReply<(Vec<u8>, FetchDataReply)>> {
        let attempt = |target| async move {
            let mut sink = MemorySink::new(max);
            let wanted = Wanted::with_status(fid, 0..max);
            let fetched = self.transfer.fetch(&target, &wanted, &mut sink).await?;
            Ok((sink.into_bytes(), fetched.into_reply().ok_or(CallError::Misuse)?))
        };
        let answered = self.calls.on_sites(&self.context, volume, FETCH, attempt).await.result?;
        add(&self.counters.bytes_fetched, answered.value.0.len() as u64);
        Ok(answered)
    }

    /// Fetches a range of a file into memory. What the reply says of the file is recorded; the caller looks at the version.
    pub(super) async fn fetch_to_memory(
        &self,
        vnode: &Arc<Vnode>,
        wanted: &Wanted,
    ) -> Result<(Vec<u8>, Fetched)> {
        let volume = self.volume_of(vnode.key).await?;
        let outcome = self
            .on_sites(&volume, vnode.key, FETCH, |target| {
                let mut sink = MemorySink::new(wanted.range.end - wanted.range.start);
                async move {
                    let fetched = self.transfer.fetch(&target, wanted, &mut sink).await?;
                    Ok((sink.into_bytes(), fetched))
                }
            })
            .await;
        let answered = outcome.result.map_err(|error| self.handle_error(vnode, error))?;
        add(&self.counters.bytes_fetched, answered.value.0.len() as u64);
        if let Fetched::ByCall(reply) = &answered.value.1 {
            let origin = answered.origin();
            self.promises.record_reply(&volume, vnode, &reply.status, &reply.callback, &reply.sync, &origin);
        }
        Ok(answered.value)
    }

    /// Makes sure that a range is cached for a handle. If the file has another version by now, the handle switches to
    /// that.
    pub(super) async fn fetch_range(&self, handle: &Arc<Handle>, range: Range<u64>) -> Result<()> {
        let (mut versions, mut stale_replies) = (0, 0);
        while versions < VERSIONS_MAX && stale_replies < STALE_REPLIES_MAX {
            let data = handle.data();
            let _pin = data.pin(range.clone());
            let changed = data.changed.notified();
            let (missing, under_way) = {
                let content = data.content();
                let end = range.end.min(content.length);
                let gaps = content.present.gaps(range.start.min(end)..end);
                let free = gaps.iter().flat_map(|gap| content.fetching.gaps(gap.clone())).next();
                (free, !gaps.is_empty())
            };
            match missing {
                Some(gap) => {
                    count(&self.counters.data_misses);
                    self.fetch_chunk(handle, &data, gap.start).await?;
                    let received = data.content().present.contains(&(gap.start..gap.start + 1));
                    stale_replies = if received { 0 } else { stale_replies + 1 };
                }
                None if under_way => changed.await,
                None => return Ok(()),
            }
            versions += u32::from(!Arc::ptr_eq(&data, &handle.data()));
        }
        Err(VenusError::new(ErrorKind::Stale, "FetchData").of(handle.vnode.key.fid))
    }

    /// Fetches the missing part of the chunk that contains a position, for a reader that waits for it.
    async fn fetch_chunk(&self, handle: &Arc<Handle>, data: &Arc<FileData>, pos: u64) -> Result<()> {
        let is_cold_start = self.is_cold_start(handle, data, pos);
        let claim = match is_cold_start {
            true => self.claim_first(handle, data),
            false => self.claim_chunk(data, pos),
        };
        let Some(claim) = claim else { return Ok(()) };
        let _counted = handle.ahead.begin();
        // From a server nearby it comes with the next read.
        if is_cold_start && self.is_far(handle) {
            self.read_ahead(handle, 0);
        }
        self.fetch_claimed(handle, claim).await
    }

    /// Claims the missing part of the chunk that contains a position. `None`: it is here or coming, or beyond the end.
    pub(super) fn claim_chunk(&self, data: &Arc<FileData>, pos: u64) -> Option<FetchClaim> {
        let chunk = self.chunk_bytes();
        let base = pos - pos % chunk;
        self.claim(data, base..base + chunk, pos)
    }

    /// Claims what is read first of a file of which nothing is here. It comes as soon as a file that has no more; the
    /// rest of the chunk is fetched ahead.
    fn claim_first(&self, handle: &Handle, data: &Arc<FileData>) -> Option<FetchClaim> {
        let first = handle.run.bytes().next_multiple_of(PAGE).clamp(PAGE, self.chunk_bytes());
        self.claim(data, 0..first, 0)
    }

    /// Whether a program reads the beginning of a long file of which nothing is here or coming.
    pub(super) fn is_cold_start(&self, handle: &Handle, data: &FileData, pos: u64) -> bool {
        let content = data.content();
        pos == 0
            && handle.run.bytes() > 0
            && content.length > self.chunk_bytes()
            && content.present.is_empty()
            && content.fetching.is_empty()
    }

    /// Claims the missing part of a range that contains a position.
    fn claim(&self, data: &Arc<FileData>, within: Range<u64>, pos: u64) -> Option<FetchClaim> {
        let base = within.start;
        let mut content = data.content();
        // Beyond the end of the server's file there is nothing to fetch.
        let end = within.end.min(content.cut.min(content.base_length));
        let gaps = content.present.gaps(base..end.max(base));
        let mut free = gaps.into_iter().flat_map(|gap| content.fetching.gaps(gap));
        let range = free.find(|gap| gap.contains(&pos))?;
        content.fetching.insert(range.clone());
        Some(FetchClaim { data: data.clone(), range })
    }

    /// Fetches what was claimed.
    pub(super) async fn fetch_claimed(&self, handle: &Arc<Handle>, claim: FetchClaim) -> Result<()> {
        let FetchClaim { data, range } = &claim;
        self.files.make_room(&handle.vnode, data, range.end - range.start, range).await;
        match self.fetch_into(&handle.vnode, data, range.clone()).await {
            Ok(answered) => self.arrived(handle, data, range.clone(), answered).await,
            Err(error) => Err(self.handle_error(&handle.vnode, error)),
        }
    }

    /// Size of a chunk.
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.limits.chunk_bytes.max(4096)
    }

    /// Transfers bytes from a server to the cache file.
    async fn fetch_into(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        range: Range<u64>,
    ) -> Result<CallReply<(Received, Fetched)>> {
        let volume = self.volume_of(vnode.key).await?;
        let wanted = &wanted_of(vnode, data, range);
        let report = &SinkReport::default();
        let outcome = self
            .on_sites(&volume, vnode.key, FETCH, |target| {
                let mut sink = CacheSink::new(self.files.worker(), data, wanted.range.clone(), report);
                async move {
                    let fetched = self.transfer.fetch(&target, wanted, &mut sink).await?;
                    Ok((sink.received(), fetched))
                }
            })
            .await;
        let answered = outcome.result.map_err(|error| match report.failure() {
            Some(kind) => VenusError::new(kind, FETCH).of(vnode.key.fid),
            None => error,
        })?;
        add(&self.counters.bytes_fetched, answered.value.0.length);
        Ok(answered)
    }

    /// Records fetched bytes, if they are of the version for which they were requested.
    async fn arrived(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        range: Range<u64>,
        answered: CallReply<(Received, Fetched)>,
    ) -> Result<()> {
        let (received, fetched) = &answered.value;
        let vnode = &handle.vnode;
        // Bytes that came without a call say nothing of status and promise: both stay as they are known.
        if let Fetched::ByCall(reply) = fetched {
            let volume = self.volume_of(vnode.key).await?;
            let origin = answered.origin();
            self.promises.record_reply(&volume, vnode, &reply.status, &reply.callback, &reply.sync, &origin);
        }
        let complete = range.start + received.length == range.end;
        let mine = {
            let mut content = data.content();
            let mine = content.version == fetched.version() && complete;
            if mine {
                content.fetched(range, &received.holes);
            }
            mine
        };
        match fetched {
            Fetched::ByCall(reply) if !mine => self.other_version(handle, data, &reply.status).await,
            _ => Ok(()),
        }
    }

    /// Handles another version at the server than the one of a handle. Dirty data is kept on top of the new version;
    /// otherwise the handle switches to it as if it had been opened now.
    async fn other_version(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        status: &fs::Status,
    ) -> Result<()> {
        let ours = {
            let content = data.content();
            if status.data_version < content.version {
                // The reply is older than what is known: it is requested again.
                return Ok(());
            }
            content.is_changing() || data.backed.load(Ordering::SeqCst)
        };
        if ours {
            return self.files.take_version(data, status).await;
        }
        match Arc::ptr_eq(&self.switch_to_current(handle, status).await?, data) {
            true => Err(VenusError::new(ErrorKind::Protocol, "FetchData").of(handle.vnode.key.fid)),
            false => Ok(()),
        }
    }
}

/// A range of the version that is in the cache.
pub(super) fn wanted_of(vnode: &Vnode, data: &FileData, range: Range<u64>) -> Wanted {
    let (fid, held) = (vnode.key.fid, data.content().version);
    let directory = vnode.state().status.as_ref().map(|status| directory_of(fid, status));
    Wanted { fid, range, held: Some(held), directory }
}

/// Claim on a range being fetched; released when dropped, whatever the outcome.
pub(super) struct FetchClaim {
    pub(super) data: Arc<FileData>,
    pub(super) range: Range<u64>,
}

impl Drop for FetchClaim {
    fn drop(&mut self) {
        self.data.content().fetching.remove(self.range.clone());
        self.data.changed.notify_waiters();
    }
}
