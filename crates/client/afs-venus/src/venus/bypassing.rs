//! Reading past the disk cache: what an open file misses comes into memory, and what it will want next is fetched ahead.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;
use bytes::{Bytes, BytesMut};

use crate::bypass::{Claim, File, Found, Verdict, Window, judge};
use crate::counters::{add, count};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::NodeTarget;
use crate::transfer::{FETCH, Fetched, Wanted};
use crate::venus::Venus;
use crate::venus::fetch::wanted_of;
use crate::vnode::{CacheUse, Vnode};

/// So many chunks read in sequence make a reader that reads a file from one end to the other.
const STREAM_CHUNKS: u64 = 4;

impl Venus {
    /// What the rules say of a file that has so many bytes.
    pub(super) fn judged(&self, vnode: &Vnode, length: u64) -> Verdict {
        if self.pins.has(vnode.key) {
            return Verdict { cache_use: CacheUse::Always, reason: "pin" };
        }
        let nodes = self.kernel.nodes();
        let name =
            nodes.held(NodeTarget::Object(vnode.key)).and_then(|node| nodes.name(node)).unwrap_or_default();
        let group = self.location.volume_of(vnode.key).map(|volume| volume.group());
        let volume = group.as_ref().map_or("", |group| group.name.as_str());
        let request = vnode.state().file.bypass_request();
        judge(&File { request, name: &name, volume, length }, self.limits.bypass.length_min)
    }

    /// Applies the rules to a file by the length that it has here.
    pub(super) fn judge_again(&self, vnode: &Vnode, data: &FileData) {
        let length = data.content().length;
        let cache_use = self.judged(vnode, length).cache_use;
        vnode.state().file.set_cache_use(cache_use);
    }

    /// Whether what is not cached of an open file is read past the cache at this moment. Not while the file is open for writing here, as
    /// what is written is in the cache, nor while a kernel has the cache file.
    pub(super) fn bypasses(&self, handle: &Handle, data: &FileData) -> bool {
        let is_changing = {
            let content = data.content();
            content.uses.writers() > 0 || content.is_dirty()
        };
        if is_changing || data.backed.load(Ordering::SeqCst) {
            return false;
        }
        let cache_use = handle.vnode.state().file.cache_use();
        match cache_use {
            CacheUse::Always => false,
            CacheUse::Never => true,
            CacheUse::Judged => self.is_one_stream(handle, data),
        }
    }

    /// The outcome of a fetch into the cache. If the cache's disk is full or fails, the error is dropped for a file that nobody changes here:
    /// the file bypasses the cache until its next open.
    pub(super) fn unless_past_the_cache(
        &self,
        handle: &Handle,
        data: &FileData,
        fetched: Result<()>,
    ) -> Result<()> {
        let Err(error) = fetched else { return Ok(()) };
        if !matches!(error.kind, ErrorKind::CacheFull | ErrorKind::Cache) || handle.may_change() {
            return Err(error);
        }
        handle.vnode.state().file.set_cache_use(CacheUse::Never);
        match self.bypasses(handle, data) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// Whether no kernel may be given the cache file. One that has it keeps it.
    pub(super) fn never_through(&self, handle: &Handle, data: &FileData) -> bool {
        handle.vnode.state().file.cache_use() == CacheUse::Never && !data.backed.load(Ordering::SeqCst)
    }

    /// Whether the handle reads a long file from one end to the other, and is the first to do so. What is read again is worth its
    /// room, unless it takes more than half of the cache.
    fn is_one_stream(&self, handle: &Handle, data: &FileData) -> bool {
        let Some(percent) = self.limits.bypass.stream_percent else { return false };
        let (version, length) = {
            let content = data.content();
            (content.version, content.length)
        };
        let cache = self.files.bytes_max();
        let share = cache / 100 * u64::from(percent);
        if length <= share || handle.run.bytes() <= STREAM_CHUNKS * self.limits.chunk_bytes {
            return false;
        }
        let is_first = handle.vnode.state().file.is_first_stream(version, handle.id);
        is_first || length > cache / 2
    }

    /// Reads a range that lies within the file, all of it of one version. `None`: the handle has another version by now.
    pub(super) async fn read_past(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        wanted: Range<u64>,
    ) -> Result<Option<Bytes>> {
        let (version, length) = {
            let content = data.content();
            (content.version, content.length)
        };
        if wanted.end > length {
            // It has been cut, or is of another version, since it was looked at.
            return Ok(None);
        }
        let window = self.window(handle);
        let is_sequential = handle.run.is_sequential();
        // The first bytes come as soon as those of a file that has no more.
        let is_first =
            is_sequential && handle.run.bytes() <= wanted.end - wanted.start && !self.is_far(handle);
        let (mut parts, mut at) = (Vec::new(), wanted.start);
        while at < wanted.end {
            let changed = self.windows.changed();
            let goes_on = is_sequential && (!is_first || at > wanted.start);
            let piece = self.windows.piece(&(at..wanted.end), length, goes_on);
            let bytes = match window.find(version, at, piece) {
                Found::Here(bytes) => bytes,
                Found::Coming | Found::Full => {
                    changed.await;
                    continue;
                }
                Found::Missing(claim) => {
                    let _counted = handle.ahead.begin();
                    if goes_on {
                        self.read_ahead_past(handle, data, claim.range().end);
                    }
                    let start = claim.range().start;
                    let Some(bytes) = self.fetch_past(handle, data, claim).await? else { return Ok(None) };
                    bytes.slice((at - start) as usize..)
                }
            };
            let part = bytes.slice(..bytes.len().min((wanted.end - at) as usize));
            at += part.len() as u64;
            parts.push(part);
        }
        if is_sequential && !is_first {
            self.read_ahead_past(handle, data, at);
        }
        Ok(Some(joined(parts)))
    }

    fn window<'a>(&self, handle: &'a Handle) -> &'a Window {
        handle.window.get_or_init(|| {
            count(&self.counters.files_bypassed);
            self.windows.open()
        })
    }

    /// Fetches a claimed range. `None`: the server has another version, to which the handle switches.
    async fn fetch_past(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        claim: Claim,
    ) -> Result<Option<Bytes>> {
        count(&self.counters.data_misses);
        let (vnode, range) = (&handle.vnode, claim.range());
        let wanted = &Wanted { held: Some(claim.version()), ..wanted_of(vnode, data, range.clone()) };
        let (bytes, fetched) = self.fetch_to_memory(vnode, wanted).await?;
        if let Fetched::ByCall(reply) = &fetched
            && reply.status.data_version != claim.version()
        {
            drop(claim);
            self.switch_past(handle, data, &reply.status).await?;
            return Ok(None);
        }
        if fetched.version() != claim.version() || bytes.len() as u64 != range.end - range.start {
            return Err(VenusError::new(ErrorKind::Protocol, FETCH).of(vnode.key.fid));
        }
        if claim.is_ahead() && !self.bypasses(handle, data) {
            // Somebody has opened the file for writing since: it is cached now, and what was fetched ahead is of no use.
            return Ok(None);
        }
        add(&self.counters.bytes_bypassed, bytes.len() as u64);
        let bytes = Bytes::from(bytes);
        claim.fill(bytes.clone());
        Ok(Some(bytes))
    }

    /// The server has another version than the one that was asked for. If it is newer than the one of the handle, the handle switches to
    /// it as if it had been opened now. Nothing is put into the cache file: a writer may have it by now, or a kernel.
    async fn switch_past(&self, handle: &Handle, data: &Arc<FileData>, status: &Status) -> Result<()> {
        if status.data_version <= data.content().version {
            return Ok(());
        }
        self.switch_to_current(handle, status).await.map(drop)
    }

    /// Starts fetching what a sequential reader at a position will want next. Nobody waits for it here.
    fn read_ahead_past(&self, handle: &Arc<Handle>, data: &Arc<FileData>, at: u64) {
        let (version, length) = {
            let content = data.content();
            (content.version, content.length)
        };
        let window = self.window(handle);
        for piece in self.windows.pieces_after(at, length) {
            let Some(counted) = self.begin_ahead(handle, 0) else { return };
            let Some(claim) = window.claim_ahead(version, at, piece) else { continue };
            let (me, handle, data) = (self.without_waiting(), handle.clone(), data.clone());
            self.env.spawn(Box::pin(async move {
                let _counted = counted;
                if let Err(error) = me.fetch_past(&handle, &data, claim).await {
                    tracing::debug!(%error, "reading ahead failed; the reader will see for itself");
                }
            }));
        }
    }
}

fn joined(mut parts: Vec<Bytes>) -> Bytes {
    match parts.pop() {
        None => Bytes::new(),
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            let mut all = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
            parts.iter().for_each(|part| all.extend_from_slice(part));
            all.freeze()
        }
    }
}
