//! Stores: dirty data goes to the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::ids::DataVersion;

use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::sending::Sent;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

/// How often a store begins anew because the data to send has changed meanwhile.
const ATTEMPTS_MAX: usize = 100;

impl Venus {
    /// Brings the server up to date. Nothing to do is success.
    pub(super) async fn store(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<()> {
        let _guard = vnode.changing.lock().await;
        self.store_locked(vnode, data, reason).await
    }

    /// The same for a caller that holds the `changing` lock of the file.
    pub(super) async fn store_locked(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<()> {
        self.files.note_kernel_writes_to_store(vnode, data).await?;
        self.store_noted(vnode, data, reason).await
    }

    /// The same after passthrough writes were recorded.
    pub(super) async fn store_noted(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<()> {
        if !is_due(vnode, data, reason) {
            return Ok(());
        }
        let volume = self.volume_of(vnode.key).await?;
        self.check_lock(vnode, &volume, data).await?;
        if self.store_under_lease(vnode, data, reason).await? {
            return Ok(());
        }
        self.attempt_store(vnode, &volume, data, reason).await
    }

    /// Retries a failed store that no program waits for any more, since its close has returned the error. What other
    /// clients have stored meanwhile was stored by closes that succeeded, and is kept.
    pub(super) async fn retry_store(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<()> {
        let _guard = vnode.changing.lock().await;
        self.files.note_kernel_writes_to_store(vnode, data).await?;
        self.retry_noted(vnode, data, reason).await
    }

    pub(super) async fn retry_noted(
        &self,
        vnode: &Arc<Vnode>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<()> {
        if !is_due(vnode, data, reason) {
            return Ok(());
        }
        self.check_login(vnode)?;
        let volume = self.volume_of(vnode.key).await?;
        self.check_lock(vnode, &volume, data).await?;
        // Requested even if promised: a server that could not reach this client could not break the promise.
        let status = match self.fetch_status(vnode, &volume).await {
            Ok(status) => status,
            Err(error) => {
                data.content().failures += 1;
                return Err(self.with_expiry(&volume, error));
            }
        };
        if self.is_base(vnode, data, &status) {
            return self.attempt_store(vnode, &volume, data, reason).await;
        }
        let into = data.content().version;
        if self.was_carried_out(vnode, &volume, data, &status, into).await? {
            return Ok(());
        }
        Err(superseded(vnode))
    }

    async fn attempt_store(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
        reason: StoreReason,
    ) -> Result<()> {
        // The error if other clients keep changing the file faster than it can be stored.
        let mut stored = Err(VenusError::new(ErrorKind::VolumeBusy, "StoreData").of(vnode.key.fid));
        for _ in 0..ATTEMPTS_MAX {
            let replaces = self.must_replace(vnode, volume, data).await;
            let replaces = replaces.map_err(|error| self.with_expiry(volume, error))?;
            match self.send_dirty(vnode, volume, data, replaces, reason).await {
                // No program waits for it; the writer that truncated the file stores it at its close.
                Ok(Sent::Cut) if reason == StoreReason::Retry => return Ok(()),
                Ok(Sent::OtherVersion) if reason == StoreReason::Retry => return Err(superseded(vnode)),
                Ok(Sent::Cut | Sent::OtherVersion | Sent::Mixed | Sent::OldServer) => {}
                Ok(Sent::All) => {
                    stored = Ok(());
                    break;
                }
                Err(error) => {
                    stored = Err(self.with_expiry(volume, error));
                    break;
                }
            }
        }
        match &stored {
            Ok(()) if data.content().is_dirty() => {}
            Ok(()) => {
                self.files.clear_store_retry(vnode.key);
                self.files.kernel_writes_stored(data).await;
            }
            // As on any file system, what is written to a file without a name needs no place.
            Err(error) if error.kind == ErrorKind::Stale && vnode.state().file.is_removed_here() => {
                self.files.became_nameless(vnode);
                return Ok(());
            }
            Err(error) => self.store_failed(vnode, error),
        }
        stored
    }

    /// The version at the server, if the local data is based on another one, so that dirty ranges do not fit into it. A
    /// fully cached file is then stored as a whole (the last close wins); otherwise the dirty ranges are put on top of
    /// the server's version.
    async fn must_replace(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        data: &Arc<FileData>,
    ) -> Result<Option<DataVersion>> {
        let based_on = data.content().version;
        let known = vnode.fresh_status(volume, self.now());
        let status = match known {
            Some(status) => status,
            None => self.status_without_check(vnode).await?,
        };
        if status.data_version == based_on {
            return Ok(None);
        }
        if data.content().is_complete() {
            return Ok(Some(status.data_version));
        }
        self.files.take_version(data, &status).await?;
        Ok(None)
    }

    /// After a store: version and times have changed; the kernel's pages are of the new version.
    pub(super) fn after_store(&self, vnode: &Arc<Vnode>, data: &FileData) {
        let version = data.content().version;
        {
            let mut state = vnode.state();
            let current = state.file.data().is_some_and(|current| std::ptr::eq(&**current, data));
            if current {
                state.file.pages_stored(version);
            }
        }
        if !data.shown.swap(false, Ordering::SeqCst) {
            return;
        }
        self.kernel.invalidate_attributes(vnode.key);
    }

    /// Converts a refusal for a user whose token has expired or is refused by the server, or who has logged out: the store
    /// is made when there is a token that the server takes.
    fn with_expiry(&self, volume: &Volume, error: VenusError) -> VenusError {
        match error.kind {
            ErrorKind::AccessDenied if self.has_lost_token(volume.cell) || self.is_token_refused(volume) => {
                VenusError { kind: ErrorKind::TokenExpired, ..error }
            }
            _ => error,
        }
    }

    fn store_failed(&self, vnode: &Arc<Vnode>, error: &VenusError) {
        tracing::warn!(%error, "unsaved data could not be stored");
        if error.kind == ErrorKind::AccessDenied {
            self.was_refused(vnode);
        }
        if error.kind == ErrorKind::Stale {
            // The file does not exist any more.
            self.files.became_nameless(vnode);
            return;
        }
        self.files.store_failed(vnode.key, self.context.user);
        self.files.note_failure(vnode.key, error);
    }
}

/// The error of a retry after other clients have stored newer data, which is kept.
fn superseded(vnode: &Vnode) -> VenusError {
    tracing::error!(fid = %vnode.key.fid, "data whose store failed is older than what others have stored since");
    VenusError::new(ErrorKind::Stale, "StoreData").of(vnode.key.fid)
}

/// True if there is something to store.
fn is_due(vnode: &Vnode, data: &FileData, reason: StoreReason) -> bool {
    let orphan = vnode.state().file.is_orphan();
    let mut content = data.content();
    if reason.completes_change() {
        content.changing = false;
    }
    !orphan && content.is_dirty() && !reason.defers_to_writer(&content)
}
