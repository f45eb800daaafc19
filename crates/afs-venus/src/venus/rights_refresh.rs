//! Asking again for rights that have become old, for many directories in one call.
//!
//! Nobody tells when somebody leaves a group. So the rights of whoever has a token are asked for again before they are
//! relied on for longer than [`crate::Limits::rights_max_age`]: in the background while they are in use, so that nobody
//! waits, and together with those of the directories that were asked for right after them the last time, which are
//! most likely to be used next.

use std::sync::Arc;

use afs_wire::fs;

use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::Vnode;

impl Venus {
    /// Asks again in the background.
    pub(super) fn refresh_rights_soon(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>) {
        let order = self.identity.rights_order();
        let Some(claim) = order.claim(self.token_for(volume.cell), volume.cell, volume.id) else { return };
        let (me, dir, volume) = (self.in_background(), dir.clone(), volume.clone());
        self.env.spawn(Box::pin(async move {
            me.refresh_rights(&dir, &volume).await;
            drop(claim);
        }));
    }

    /// Asks for the rights in a directory that were known once, and for those of its companions that are getting old. An
    /// error is not told: whoever needs the rights will ask and see.
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
