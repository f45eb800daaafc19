//! Reading past the disk cache: what an open file misses comes into memory, and what it will want next is fetched ahead.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::bypass::{Claim, Found, Window};
use crate::counters::{add, count};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::transfer::{FETCH, Fetched, Wanted};
use crate::venus::Venus;
use crate::venus::fetch::wanted_of;

impl Venus {
    /// Reads a range that lies within the file, all of it of one version. `None`: the handle has another version by now.
    pub(super) async fn read_past(
        &self,
        handle: &Arc<Handle>,
        data: &Arc<FileData>,
        wanted: Range<u64>,
    ) -> Result<Option<Bytes>> {
        let (version, length) = data.extent();
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

    /// Fetches a claimed range. `None`: the server has another version; if that is newer, the handle switches to it as if it had been
    /// opened now.
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
            // Nothing is put into the cache file: a writer may have it by now, or a kernel.
            if reply.status.data_version > data.extent().0 {
                self.switch_to_current(handle, &reply.status).await?;
            }
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

    /// Starts fetching what a sequential reader at a position will want next. Nobody waits for it here.
    fn read_ahead_past(&self, handle: &Arc<Handle>, data: &Arc<FileData>, at: u64) {
        let (version, length) = data.extent();
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

fn joined(parts: Vec<Bytes>) -> Bytes {
    match <[Bytes; 1]>::try_from(parts) {
        Ok([only]) => only,
        Err(parts) => parts.concat().into(),
    }
}
