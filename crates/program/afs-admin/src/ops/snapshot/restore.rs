//! Restore of a volume from one of its snapshots.

use afs_wire::ids::{UnixSeconds, VolumeKind};
use afs_wire::vol::{HeaderStatus, VolumeInfo};

use super::SnapshotPlan;
use crate::Admin;
use crate::calls::{Attach, cookie};
use crate::error::AdminResult;
use crate::ops::restore::later;

impl SnapshotPlan {
    /// The server writes the snapshot's content beside the present one and switches when it is complete.
    pub(super) async fn restore(&self, admin: &Admin) -> AdminResult {
        let from = admin.take_existing(self.place, self.snapshot, Attach::BUSY).await?;
        let restored = async {
            let to = admin.take_existing(self.place, self.volume, Attach::BUSY).await?;
            let cookie = cookie(&self.name, VolumeKind::ReadWrite, self.volume);
            let restored = async {
                let before = to.status().await?;
                admin.forward_watched(&from, UnixSeconds(0), &to, cookie).await?;
                to.set_info(changed_now(admin.now(), &before)).await
            };
            let restored = restored.await;
            to.end_after(restored).await
        };
        let restored = restored.await;
        from.end_after(restored).await
    }
}

/// The content is new: replicas of the old one are older, and increments by date do not contain it.
fn changed_now(now: UnixSeconds, before: &HeaderStatus) -> VolumeInfo {
    let now = later(now, Some(before));
    VolumeInfo { creation_date: now, update_date: now, ..VolumeInfo::unchanged() }
}
