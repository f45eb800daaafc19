//! Undo of a move before the switch.

use super::{MovePlan, Step};
use crate::Admin;
use crate::calls::Attach;
use crate::error::AdminResult;
use crate::group::home;
use crate::journal::Job;
use crate::ops::Outcome;

impl MovePlan {
    /// At the switch: whether the target is lost while the location database still has the source. The source
    /// was closed after all of it had been sent, so neither is newer; and no client was told of the target.
    pub(super) async fn is_to_be_undone(&self, admin: &Admin) -> AdminResult<bool> {
        let entry = admin.existing_entry(self.volume, &self.name).await?;
        if home(&entry) != Some(self.from) {
            return Ok(false);
        }
        Ok(admin.volume_at(self.to, self.volume).await?.is_none())
    }

    pub(super) async fn undo(&mut self, admin: &Admin, job: &Job) -> AdminResult<Outcome> {
        let before = self.step;
        if before == Step::Lock {
            admin.unlock_entry(self.volume, &self.name).await?;
            return Ok(Outcome::Undone);
        }
        self.next(Step::Undo, job).await?;
        // Clients wait for the source: it comes first, whatever happens to the target.
        admin.publish(self.from, self.volume, Attach::BUSY.breaking(true)).await?;
        self.drop_target(admin).await?;
        if self.clone.0 != 0 {
            admin.delete_volume(self.from, self.clone, true).await?;
        }
        admin.unlock_entry(self.volume, &self.name).await?;
        Ok(Outcome::Undone)
    }

    async fn drop_target(&self, admin: &Admin) -> AdminResult {
        let entry = admin.existing_entry(self.volume, &self.name).await?;
        if home(&entry) == Some(self.to) {
            // Must not be deleted: the location database has it as the volume.
            return Ok(());
        }
        admin.delete_volume(self.to, self.volume, true).await?;
        self.drop_shipped(admin).await
    }
}
