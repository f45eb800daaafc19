//! Deletion of any volume of a group.

use afs_wire::ids::VolumeId;

use super::Members;
use crate::error::VolumeError;
use crate::store::VolumeStore;

impl VolumeStore {
    /// Deletes a volume: it is invisible at once, its id is free, and its readers end with an error. Whatever
    /// no other volume of the group references is deleted in the background. After an error nothing has
    /// changed.
    pub async fn delete_volume(&self, id: VolumeId) -> Result<(), VolumeError> {
        self.change_members(move |members: &mut Members<'_, '_>, _| members.remove(id)).await?;
        self.forget(id);
        Ok(())
    }
}
