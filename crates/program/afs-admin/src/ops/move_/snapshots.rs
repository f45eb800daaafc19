//! Move of snapshots with their volume: oldest first, each as the difference from the one before it, and
//! cloned at the target under the same id, name and date before the next one is sent. So they share at the
//! target what they share at the source.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::ReleaseType;
use afs_wire::vol::VolumeFlags;
use afs_wire::xdr::BoundedVec;

use super::MovePlan;
use crate::calls::{Attach, Transaction, UNPUBLISHED};
use crate::error::{AdminError, AdminResult};
use crate::lost_snapshots::LostSnapshots;
use crate::{Admin, ServerPartition, Snapshot};

/// Most snapshots of one move: the journal lists them all.
const SNAPSHOTS_MAX: usize = 1000;

impl Admin {
    /// The snapshots of the volume, oldest first, also entered into the plan. Refuses if any made by a user
    /// would be lost.
    pub(super) async fn plan_snapshots(
        &self,
        doing: &str,
        plan: &mut MovePlan,
        dropped: bool,
    ) -> AdminResult<Vec<Snapshot>> {
        let mut snapshots = self.snapshots_at(plan.from, plan.volume).await?;
        // Listed newest first.
        snapshots.reverse();
        if snapshots.len() > SNAPSHOTS_MAX {
            let why = format!("it has {} snapshots, and {SNAPSHOTS_MAX} can be moved", snapshots.len());
            return Err(AdminError::refused(doing, why).with_hint(
                "remove old ones with `andrew vos snapshot remove`, or all with --drop-snapshots",
            ));
        }
        let losing = LostSnapshots::of(&snapshots);
        if let Some(which) = losing.described().filter(|_| !dropped)
            && !self.is_ours(plan.to.server).await
        {
            let server = plan.to.server;
            if losing.needs_consent() {
                let why = format!("server {server} keeps no snapshots, and these would be lost: {which}");
                return Err(
                    AdminError::refused(doing, why).with_hint("--drop-snapshots moves it without them")
                );
            }
            let what =
                format!("server {server} keeps no snapshots; those of {} are lost: {which}", plan.name);
            self.progress().warn(&what);
            plan.drop_snapshots = true;
        }
        plan.snapshots = snapshots.iter().map(|s| s.volume.0).collect();
        Ok(snapshots)
    }
}

impl MovePlan {
    /// The snapshots that move with the volume, oldest first.
    fn shipped(&self) -> impl DoubleEndedIterator<Item = VolumeId> + use<> {
        let shipped = if self.drop_snapshots { Vec::new() } else { self.snapshots.clone() };
        shipped.into_iter().map(VolumeId)
    }

    /// The state of the target after the snapshots: the newest of them.
    pub(super) fn newest_shipped(&self) -> Option<VolumeId> {
        self.shipped().next_back()
    }

    pub(super) fn shipped_count(&self) -> usize {
        self.shipped().count()
    }

    /// Sends the snapshots into the target's transaction, and clones each there.
    pub(super) async fn send_snapshots(
        &self,
        admin: &Admin,
        target: &Transaction,
        snapshots: &[Snapshot],
    ) -> AdminResult {
        let mut base = None;
        if self.shipped_count() > 0 {
            // They are cloned from the target, setting included.
            admin.carry_settings(self.from.server, self.volume, target).await?;
        }
        for snapshot in snapshots.iter().filter(|_| !self.drop_snapshots) {
            admin.progress().step(&format!("sending snapshot {} of {}", snapshot.name, self.name));
            let held = admin.take_existing(self.from, snapshot.volume, Attach::BUSY).await?;
            let sent = self.send_state(admin, &held, base, target).await;
            held.end_after(sent).await?;
            self.keep_snapshot(admin, target, snapshot).await?;
            base = Some(snapshot.volume);
        }
        Ok(())
    }

    /// Sends a complete state, or its difference from one that the target has.
    pub(super) async fn send_state(
        &self,
        admin: &Admin,
        held: &Transaction,
        base: Option<VolumeId>,
        target: &Transaction,
    ) -> AdminResult {
        match base {
            Some(base) => held.forward_difference(base, target, self.cookie()).await,
            None => admin.forward_watched(held, afs_wire::ids::UnixSeconds(0), target, self.cookie()).await,
        }
    }

    /// Only a volume in service can be cloned. No client knows of the target yet, and its transaction
    /// excludes all.
    async fn keep_snapshot(&self, admin: &Admin, target: &Transaction, snapshot: &Snapshot) -> AdminResult {
        // Left by an earlier attempt.
        admin.delete_volume(self.to, snapshot.volume, false).await?;
        let whole_name = format!("{}.{}", self.name, snapshot.name);
        target.set_flags(VolumeFlags(0)).await?;
        let cloned = target.clone_as(snapshot.volume, &whole_name, VolumeKind::Backup).await;
        target.set_flags(UNPUBLISHED).await?;
        cloned?;
        let held = admin.take_existing(self.to, snapshot.volume, Attach::OFFLINE).await?;
        let dated = async {
            held.set_creation(snapshot.created).await?;
            held.set_flags(VolumeFlags(0)).await
        };
        let dated = dated.await;
        held.end_after(dated).await
    }

    /// After the switch: sets the target as the site of each snapshot's entry, and then deletes the snapshot
    /// at the source. Idempotent.
    pub(super) async fn switch_snapshots(&self, admin: &Admin) -> AdminResult {
        for id in self.snapshots.iter().copied().map(VolumeId) {
            if let Some(mut entry) = admin.entry(id).await? {
                if self.drop_snapshots {
                    admin.delete_entry(&entry).await?;
                } else if entry.sites.iter().any(|s| ServerPartition::from(s) == self.from) {
                    let sites = entry.sites.iter().map(|s| self.to.site(s.flags));
                    entry.sites = BoundedVec::first_of(sites);
                    admin.replace_entry(&entry, ReleaseType::NONE).await?;
                }
            }
            admin.delete_volume(self.from, id, true).await?;
        }
        Ok(())
    }

    /// Before the switch: deletes the snapshots at the target.
    pub(super) async fn drop_shipped(&self, admin: &Admin) -> AdminResult {
        for id in self.shipped() {
            admin.delete_volume(self.to, id, true).await?;
        }
        Ok(())
    }
}
