//! The property `afs.bypass`: a user requests that a file bypasses the disk cache, and reads whether it does and why.

use afs_wire::fs::FileKind;

use crate::api::{Access, BypassRequest};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::venus::Venus;
use crate::vnode::{CacheUse, Vnode, may};

impl Venus {
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
        let verdict = self.judged(vnode, length);
        match verdict.cache_use == CacheUse::Never && is_changing(vnode) {
            true => (false, "open for writing"),
            false => (verdict.cache_use == CacheUse::Never, verdict.reason),
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
        let wanted = Access { read: true, ..Access::default() };
        self.require(&vnode, &status, "bypass", |rights| may(&status, rights, wanted)).await?;
        vnode.state().file.request_bypass(request);
        let cache_use = self.judged(&vnode, status.length).cache_use;
        vnode.state().file.set_cache_use(cache_use);
        let is_unused = vnode.state().file.data().is_none();
        if cache_use == CacheUse::Never && is_unused {
            // What is kept of it would be of no use.
            self.files.forget_kept_on_disk(key).await?;
        }
        // What the kernel has read past the cache would keep the reads away that are to fill it.
        vnode.state().file.forget_pages();
        self.invalidate(key);
        Ok(())
    }
}

/// Whether what is written here is in the cache for the moment.
fn is_changing(vnode: &Vnode) -> bool {
    let data = vnode.state().file.data().cloned();
    data.is_some_and(|data| {
        let content = data.content();
        content.uses.writers() > 0 || content.is_dirty()
    })
}
