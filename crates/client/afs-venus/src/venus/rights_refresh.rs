//! Refresh of rights in the background, for many directories in one call.
//!
//! Servers of other implementations do not notify clients when a user leaves a group. The rights of users with tokens are
//! therefore fetched again there before they are older than [`crate::Limits::rights_max_age`]: in the background as long as they are in use, so
//! that no program waits, and together with those of the directories that were requested next the last time, which are
//! likely to be used next.

use std::sync::Arc;

use afs_wire::fs;

use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Refreshes rights in the background.
    pub(super) fn refresh_rights_soon(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) {
        let order = self.identity.rights_order();
        let Some(claim) = order.claim(self.token_for(volume.cell), volume.cell, volume.id) else { return };
        let (me, dir, volume) = (self.in_background(), dir.clone(), volume.clone());
        self.env.spawn(Box::pin(async move {
            me.refresh_rights(&dir, &volume).await;
            drop(claim);
        }));
    }

    /// Fetches the rights in a directory that were known, and those of the directories requested after it that expire
    /// soon. Errors are ignored: an operation that needs the rights requests them itself.
    pub(super) async fn refresh_rights(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) {
        let token = self.token_for(volume.cell);
        let keys = self.promises.ageing_rights(token, dir, volume, fs::FIDS_MAX);
        if keys.is_empty() {
            return;
        }
        if let Err(error) = self.bulk_status(volume, &keys).await {
            tracing::debug!(%error, "rights could not be asked for again");
        }
    }
}
