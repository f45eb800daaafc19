//! What stays of an object in the cache: as the rules and the pins give it, asked where its data is read, and told and requested by the
//! property `afs.bypass`.

use std::sync::atomic::Ordering;

use afs_wire::fs::FileKind;

use crate::api::BypassRequest;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::Handle;
use crate::key::{Key, NodeTarget};
use crate::residency::{File, Residency, Verdict, judge};
use crate::venus::Venus;
use crate::vnode::Vnode;

/// So many chunks read in sequence make a reader that reads a file from one end to the other.
const STREAM_CHUNKS: u64 = 4;

impl Venus {
    /// What the rules say of a file that has so many bytes.
    fn judged(&self, vnode: &Vnode, length: u64) -> Verdict {
        let nodes = self.kernel.nodes();
        let name =
            nodes.held(NodeTarget::Object(vnode.key)).and_then(|node| nodes.name(node)).unwrap_or_default();
        let group = self.location.volume_of(vnode.key).map(|volume| volume.group());
        let volume = group.as_ref().map_or("", |group| group.name.as_str());
        let (pinned, request) = (self.pins.residency(vnode.key), vnode.state().file.bypass_request());
        judge(&File { pinned, request, name: &name, volume, length }, self.limits.bypass.length_min)
    }

    /// Applies the rules to a file that has so many bytes.
    pub(super) fn apply_rules(&self, vnode: &Vnode, length: u64) -> Residency {
        let residency = self.judged(vnode, length).residency;
        vnode.state().residency = residency;
        residency
    }

    /// Applies the pins to an object. Of one that left them, what was used last stays until its next open.
    pub(super) fn apply_pins(&self, key: Key) {
        loop {
            let pinned = self.pins.residency(key);
            let vnode = if pinned.is_some() { Some(self.vnode(key)) } else { self.vnodes.peek(key) };
            if let Some(vnode) = vnode {
                vnode.state().residency = pinned.unwrap_or_default();
            }
            self.files.set_pinned(key, pinned.is_some());
            // The pins may have changed meanwhile.
            if self.pins.residency(key) == pinned {
                return;
            }
        }
    }

    /// Whether what is not cached of an open file is read past the cache at this moment. Not while the file is open for writing here, as
    /// what is written is in the cache, nor while a kernel has the cache file.
    pub(super) fn bypasses(&self, handle: &Handle, data: &FileData) -> bool {
        if data.content().is_changing() || data.backed.load(Ordering::SeqCst) {
            return false;
        }
        let residency = handle.vnode.state().residency;
        residency == Residency::Past || (residency == Residency::Cached && self.is_one_stream(handle, data))
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
        handle.vnode.state().residency = Residency::Past;
        match self.bypasses(handle, data) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// Whether no kernel may be given the cache file. One that has it keeps it.
    pub(super) fn never_through(&self, handle: &Handle, data: &FileData) -> bool {
        handle.vnode.state().residency == Residency::Past && !data.backed.load(Ordering::SeqCst)
    }

    /// Whether the handle reads a long file from one end to the other, and is the first to do so. What is read again is worth its
    /// room, unless it takes more than half of the cache.
    fn is_one_stream(&self, handle: &Handle, data: &FileData) -> bool {
        let Some(percent) = self.limits.bypass.stream_percent else { return false };
        let (version, length) = data.extent();
        let cache = self.files.bytes_max();
        let share = cache / 100 * u64::from(percent);
        if length <= share || handle.run.bytes() <= STREAM_CHUNKS * self.limits.chunk_bytes {
            return false;
        }
        let is_first = handle.vnode.state().file.is_first_stream(version, handle.id);
        is_first || length > cache / 2
    }

    /// JSON: what was requested, whether the file is read past the cache, and the rule that says so. Of a directory: what holds for
    /// files in it that no other rule applies to.
    pub(super) async fn bypass_told(&self, key: Key) -> Result<String> {
        let vnode = self.vnode(key);
        let status = self.status(&vnode).await?;
        let length = if status.kind == FileKind::File { status.length } else { 0 };
        let request = vnode.state().file.bypass_request();
        let (bypassed, reason) = self.bypass_now(&vnode, length);
        Ok(format!("{{\"request\":\"{request}\",\"bypassed\":{bypassed},\"reason\":\"{reason}\"}}"))
    }

    /// Whether a file of so many bytes bypasses the cache now, and the rule that decides.
    pub(super) fn bypass_now(&self, vnode: &Vnode, length: u64) -> (bool, &'static str) {
        let Verdict { residency, reason } = self.judged(vnode, length);
        let data = vnode.state().file.data().cloned();
        match residency {
            Residency::Past if data.is_some_and(|data| data.content().is_changing()) => {
                (false, "open for writing")
            }
            _ => (residency == Residency::Past, reason),
        }
    }

    /// Takes a request for a file, from one who may read it. It holds as long as the status cache has the file.
    pub(super) async fn request_bypass(&self, key: Key, value: &[u8]) -> Result<()> {
        let invalid = || VenusError::new(ErrorKind::Invalid, "bypass").of(key.fid);
        let request = BypassRequest::of_word(value.trim_ascii()).ok_or_else(invalid)?;
        let vnode = self.vnode(key);
        let status = self.status(&vnode).await?;
        if status.kind != FileKind::File {
            return Err(invalid());
        }
        self.require_to_read(&vnode, &status, "bypass").await?;
        vnode.state().file.request_bypass(request);
        let residency = self.apply_rules(&vnode, status.length);
        let is_unused = vnode.state().file.data().is_none();
        if residency == Residency::Past && is_unused {
            // What is kept of it would be of no use.
            self.files.forget_kept_on_disk(key).await?;
        }
        // What the kernel has read past the cache would keep the reads away that are to fill it.
        vnode.state().file.forget_pages();
        self.invalidate(key);
        Ok(())
    }
}
