//! Data whose store failed survives the mount: it is kept before the error is told, and taken up again at the next start.

use std::sync::{Arc, Weak};

use afs_wire::fs::Status;

use crate::cache::UnsavedTicket;
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::files::{CopiedKept, Restored, RestoredCopy};
use crate::identity::TokenId;
use crate::venus::{Shared, Venus};
use crate::vnode::Vnode;

impl Venus {
    /// Keeps data whose store has failed beyond the end of the mount.
    pub(super) async fn keep_unsaved(&self, vnode: &Vnode, data: &Arc<FileData>) {
        let user = self.files.retry_user(vnode.key).unwrap_or(self.context.user);
        let had_token = self.as_user(user).has_or_had_token(vnode);
        self.files.keep_unsaved(vnode, data, had_token).await;
    }

    /// Sets data aside that no server will accept, unless the file is still open, and keeps it.
    pub(super) async fn give_up_data(&self, vnode: &Vnode, error: &VenusError) {
        let number = self.files.give_up_aside(vnode, self.context.user, error);
        self.distrust(vnode);
        self.invalidate(vnode.key);
        if let Some(number) = number {
            self.keep_aside(vnode, number).await;
        }
    }

    /// Keeps data that was set aside beyond the end of the mount.
    pub(super) async fn keep_aside(&self, vnode: &Vnode, number: u64) {
        self.files.keep_set_aside(vnode, number, self.has_or_had_token(vnode)).await;
    }

    fn has_or_had_token(&self, vnode: &Vnode) -> bool {
        self.token_for(vnode.key.cell) != TokenId::NONE || self.has_lost_token(vnode.key.cell)
    }

    /// Takes up what earlier mounts kept, and retries the stores. Another start of the mount does it again for what
    /// cannot be read now.
    pub(super) async fn restore_kept(shared: Weak<Shared>) {
        let Some(venus) = shared.upgrade().map(Venus::anonymous) else { return };
        let kept = match venus.files.kept_by_earlier_mounts().await {
            Ok(kept) => kept,
            Err(error) => {
                tracing::error!(%error, "unsaved data of earlier mounts cannot be listed; it stays in the cache");
                return;
            }
        };
        for ticket in kept {
            if venus.is_closing() {
                return;
            }
            venus.restore_one(ticket).await;
        }
        venus.in_background().retry_stores().await;
    }

    async fn restore_one(&self, ticket: UnsavedTicket) {
        let number = ticket.number;
        let copy = match self.copy_kept(ticket).await {
            Ok(Some(copy)) => copy,
            Ok(None) => {
                tracing::warn!(
                    number,
                    "unsaved data of an earlier mount stays in the cache: it is another cell's"
                );
                return;
            }
            Err(error) => {
                tracing::error!(%error, number, "unsaved data of an earlier mount cannot be read; it stays in the cache");
                return;
            }
        };
        let vnode = self.vnode(copy.key);
        let _guard = vnode.changing.lock().await;
        // No version of the server's may be found under data that is changed.
        if let Err(error) = self.files.forget_kept_on_disk(vnode.key).await {
            tracing::warn!(%error, "the cached version of a file with unsaved data cannot be removed");
        }
        let fid = vnode.key.fid;
        match self.files.restore(&vnode, copy) {
            true => tracing::info!(%fid, "unsaved data of an earlier mount is stored again"),
            false => {
                tracing::warn!(%fid, "unsaved data of an earlier mount is set aside; `andrew fs recover` has it")
            }
        }
        self.distrust(&vnode);
        self.invalidate(vnode.key);
    }

    /// The copy of such data. A cell that an earlier mount had found is looked up again.
    async fn copy_kept(&self, ticket: UnsavedTicket) -> Result<Option<RestoredCopy>> {
        let cell = match self.files.copy_kept(ticket).await? {
            Some(CopiedKept::UnknownCell(cell)) => cell,
            Some(CopiedKept::Copy(copy)) => return Ok(Some(*copy)),
            None => return Ok(None),
        };
        if self.cells.find(cell.as_str()).await.is_none() {
            return Ok(None);
        }
        Ok(match self.files.copy_kept(ticket).await? {
            Some(CopiedKept::Copy(copy)) => Some(*copy),
            _ => None,
        })
    }

    /// Whether data may be stored for the current user: that of an earlier mount not without the token that its user had.
    pub(super) fn check_login(&self, vnode: &Vnode) -> Result<()> {
        let is_without = |(user, restored): (_, Restored)| {
            user == self.context.user && restored.had_token && self.token_for(vnode.key.cell) == TokenId::NONE
        };
        match self.files.restored(vnode.key).is_some_and(is_without) {
            true => Err(VenusError::new(ErrorKind::TokenExpired, "StoreData").of(vnode.key.fid)),
            false => Ok(()),
        }
    }

    /// True if the server still has the version from which the data was made.
    pub(super) fn is_base(&self, vnode: &Vnode, data: &FileData, status: &Status) -> bool {
        let is_same_file = |(_, restored): (_, Restored)| {
            restored.base_version != status.data_version
                || (status.length == restored.base_length
                    && restored
                        .base_time
                        .is_none_or(|time| time.seconds() == status.client_mod_time.seconds()))
        };
        data.content().version == status.data_version
            && self.files.restored(vnode.key).is_none_or(is_same_file)
    }
}
