//! Deleting any volume of a group.

use afs_wire::ids::VolumeId;

use super::Members;
use crate::error::VolumeError;
use crate::store::VolumeStore;

impl VolumeStore {
    /// Takes a volume away: at once invisible, its number free, and readers of it end with an error. What nobody else of its group
    /// needs goes in the background. After an error nothing has changed.
    pub async fn delete_volume(&self, id: VolumeId) -> Result<(), VolumeError> {
        self.change_members(move |members: &mut Members<'_, '_>, _| members.remove(id)).await?;
        self.forget(id);
        Ok(())
    }
}
