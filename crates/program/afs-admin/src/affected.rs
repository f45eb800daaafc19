//! Volumes that an operation works on, to attribute transactions and clones to it.

use afs_wire::ids::VolumeId;

use crate::journal::Record;
use crate::plan::Plan;

impl Record {
    /// The read-write volume of the group, and the volumes that the operation creates, holds or deletes.
    #[must_use]
    pub fn volumes(&self) -> Vec<VolumeId> {
        let mut all = vec![self.draft.volume];
        // A record of another version gives only its group.
        if let Ok(plan) = serde_json::from_slice::<Plan>(&self.draft.detail) {
            all.extend(others(&plan));
        }
        all.retain(|id| id.0 != 0);
        all
    }

    /// Whether the operation works on a volume.
    #[must_use]
    pub fn works_on(&self, volume: VolumeId) -> bool {
        self.volumes().contains(&volume)
    }
}

fn others(plan: &Plan) -> Vec<VolumeId> {
    match plan {
        Plan::Remove(plan) => plan.others(),
        Plan::Move(plan) => plan.others(),
        Plan::Copy(plan) => plan.others(),
        Plan::Backup(plan) => plan.others(),
        Plan::Release(plan) => plan.others(),
        Plan::Convert(plan) => plan.others(),
        Plan::Snapshot(plan) => plan.others(),
        Plan::Swap(plan) => plan.others(),
        Plan::Create(_) | Plan::Restore(_) | Plan::Rename(_) | Plan::Edit(_) => Vec::new(),
    }
}
