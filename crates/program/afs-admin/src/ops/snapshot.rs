//! `vos snapshot`: named states of a volume, on servers of ours. Each is a volume of its own, with an entry
//! under `VOLUME.NAME`.

mod restore;

use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind, VolumeName};
use afs_wire::vl::{Entry, EntryFlags, NameChars, SiteFlags};
use afs_wire::vol::ListSnapshots;
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::calls::Attach;
use crate::error::{AdminError, AdminResult};
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};

/// A named state of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Its name, without the volume's.
    pub name: String,
    /// The volume that contains it.
    pub volume: VolumeId,
    /// Creation time.
    pub created: UnixSeconds,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SnapshotPlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: ServerPartition,
    /// The id of the volume that contains it, and its full name.
    #[serde(with = "crate::wire_numbers::volume")]
    snapshot: VolumeId,
    whole_name: String,
}

/// Steps on a snapshot: one that has no entry at the end is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The volume is cloned.
    Clone,
    /// The clone gets its entry.
    Enter,
    /// The snapshot is deleted, then its entry.
    Delete,
    /// The volume's content is replaced by the snapshot's.
    Restore,
}

impl Admin {
    /// Creates a snapshot. Returns the id of the volume that contains it.
    ///
    /// # Errors
    /// No such volume, a name that is taken or invalid, or a server without snapshots.
    pub async fn create_snapshot(&self, volume: &str, name: &str) -> AdminResult<VolumeId> {
        let doing = format!("Could not make snapshot {name} of {volume}");
        let (group, place) = self.read_write(&doing, volume).await?;
        let whole_name = format!("{}.{name}", group.name());
        check_snapshot_name(&doing, &group.name(), name)?;
        self.check_keeps_snapshots(&doing, place.server).await?;
        if self.entry_named(&whole_name).await?.is_some() {
            return Err(AdminError::refused(doing, format!("there is a volume {whole_name} already")));
        }
        let snapshot = self.new_id().await?;
        let plan = SnapshotPlan {
            volume: group.id(),
            name: group.name(),
            step: Step::Clone,
            place,
            snapshot,
            whole_name,
        };
        self.run_snapshot(plan).await.map(|()| snapshot)
    }

    /// The snapshots of a volume, newest first.
    ///
    /// # Errors
    /// No such volume, or its server does not reply.
    pub async fn snapshots(&self, volume: &str) -> AdminResult<Vec<Snapshot>> {
        let (group, place) =
            self.read_write(&format!("Could not list the snapshots of {volume}"), volume).await?;
        self.snapshots_at(place, group.id()).await
    }

    /// Removes a snapshot.
    ///
    /// # Errors
    /// No such volume or snapshot, or its server fails.
    pub async fn remove_snapshot(&self, volume: &str, name: &str) -> AdminResult {
        let plan = self.of_snapshot("remove", volume, name, Step::Delete).await?;
        self.run_snapshot(plan).await
    }

    /// Replaces the volume's content by a snapshot's. The present content is lost, unless another snapshot
    /// has it.
    ///
    /// # Errors
    /// No such volume or snapshot, or its server fails.
    pub async fn restore_snapshot(&self, volume: &str, name: &str) -> AdminResult {
        let plan = self.of_snapshot("restore", volume, name, Step::Restore).await?;
        self.run_snapshot(plan).await
    }

    async fn of_snapshot(
        &self,
        word: &str,
        volume: &str,
        name: &str,
        step: Step,
    ) -> AdminResult<SnapshotPlan> {
        let doing = format!("Could not {word} snapshot {name} of {volume}");
        let (group, place) = self.read_write(&doing, volume).await?;
        let all = self.snapshots_at(place, group.id()).await?;
        let found = all.into_iter().find(|s| s.name == name).ok_or_else(|| {
            AdminError::refused(doing, "there is none of that name")
                .with_hint(format!("`andrew vos snapshot list {}` shows those there are", group.name()))
        })?;
        let whole_name = format!("{}.{name}", group.name());
        Ok(SnapshotPlan {
            volume: group.id(),
            name: group.name(),
            step,
            place,
            snapshot: found.volume,
            whole_name,
        })
    }

    async fn run_snapshot(&self, mut plan: SnapshotPlan) -> AdminResult {
        let job = Job::begin(self, &plan.clone().into()).await?;
        match plan.run(self, &job).await {
            Ok(()) => job.end().await,
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }

    /// The snapshots of a volume at its server; none if the server does not support snapshots.
    pub(crate) async fn snapshots_at(
        &self,
        place: ServerPartition,
        volume: VolumeId,
    ) -> AdminResult<Vec<Snapshot>> {
        match self.at(place.server, &ListSnapshots { volume }).await {
            Ok(reply) => Ok(reply.snapshots.iter().map(Snapshot::from).collect()),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(Vec::new()),
            Err(error) => {
                let doing = format!("Could not list the snapshots of volume {volume}");
                Err(AdminError::call(doing, Some(place.server), error))
            }
        }
    }

    /// Whether a server supports snapshots.
    pub(crate) async fn probe_snapshots(&self, server: Ipv4Addr) -> Result<(), CallError> {
        self.at(server, &ListSnapshots { volume: VolumeId(0) }).await.map(drop)
    }

    async fn check_keeps_snapshots(&self, doing: &str, server: Ipv4Addr) -> AdminResult {
        if self.is_ours(server).await {
            return Ok(());
        }
        Err(AdminError::refused(doing, format!("server {server} keeps no snapshots"))
            .with_hint("`andrew vos backup` makes the one copy that every server can keep"))
    }

    /// Deletes a snapshot with its entry. Idempotent.
    pub(crate) async fn delete_snapshot(&self, place: ServerPartition, snapshot: &Snapshot) -> AdminResult {
        self.delete_kept(place, snapshot.volume).await
    }

    async fn delete_kept(&self, place: ServerPartition, snapshot: VolumeId) -> AdminResult {
        self.delete_volume(place, snapshot, true).await?;
        match self.entry(snapshot).await? {
            Some(entry) => self.delete_entry(&entry).await,
            None => Ok(()),
        }
    }
}

impl From<&afs_wire::vol::Snapshot> for Snapshot {
    fn from(wire: &afs_wire::vol::Snapshot) -> Self {
        Self { name: wire.name.to_text(), volume: wire.volume, created: wire.created }
    }
}

impl SnapshotPlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.snapshot]
    }

    pub(crate) fn word(&self) -> &'static str {
        match self.step {
            Step::Clone | Step::Enter => "snapshot",
            Step::Delete => "snapshot-remove",
            Step::Restore => "snapshot-restore",
        }
    }

    pub(crate) fn says(&self) -> String {
        let name = &self.whole_name;
        match self.step {
            Step::Clone => format!("making {name}"),
            Step::Enter => format!("entering {name} into the VLDB"),
            Step::Delete => format!("removing {name}"),
            Step::Restore => format!("giving {} the state of {name}", self.name),
        }
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        match self.step {
            Step::Clone | Step::Enter => {
                let source = admin.take_existing(self.place, self.volume, Attach::BUSY).await?;
                let cloned = source.clone_as(self.snapshot, &self.whole_name, VolumeKind::Backup).await;
                source.end_after(cloned).await?;
                admin.publish(self.place, self.snapshot, Attach::OFFLINE).await?;
                self.step = Step::Enter;
                job.step(&Plan::from(self.clone())).await?;
                admin.create_entry(&self.entry()).await
            }
            Step::Delete => admin.delete_kept(self.place, self.snapshot).await,
            Step::Restore => self.restore(admin).await,
        }
    }

    fn entry(&self) -> Entry {
        Entry {
            name: NameChars::truncated(self.whole_name.as_bytes()),
            sites: BoundedVec::first_of([self.place.site(SiteFlags::RW_VOLUME)]),
            ids: [self.snapshot, VolumeId(0), VolumeId(0)],
            flags: EntryFlags::RW_EXISTS,
            ..Entry::default()
        }
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        admin.break_transactions(self.place, self.volume).await?;
        admin.break_transactions(self.place, self.snapshot).await?;
        let outcome = match self.step {
            Step::Clone | Step::Enter if admin.entry(self.snapshot).await?.is_some() => Outcome::Completed,
            Step::Clone | Step::Enter => {
                admin.delete_volume(self.place, self.snapshot, true).await?;
                Outcome::Undone
            }
            Step::Delete => {
                admin.delete_kept(self.place, self.snapshot).await?;
                Outcome::Completed
            }
            // It is not known whether it had come to the switch; repeating it is harmless.
            Step::Restore => {
                self.restore(admin).await?;
                Outcome::Completed
            }
        };
        job.end().await?;
        Ok(outcome)
    }
}

fn check_snapshot_name(doing: &str, volume: &str, name: &str) -> AdminResult {
    let good = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_');
    let reserved = name.ends_with("readonly") || name.ends_with("backup");
    let wrong = |why: &str| Err(AdminError::refused(doing, why));
    // The dot between the two.
    let room = VolumeName::HEADER_MAX.saturating_sub(volume.len() + 1);
    match () {
        () if !good => wrong("a snapshot's name is made of letters, digits, '-' and '_'"),
        () if reserved => wrong("a snapshot's name may not end in readonly or backup"),
        () if room == 0 => wrong("the volume's name is so long that no snapshot of it can have one"),
        () if name.len() > room => wrong(&format!("the name has {} characters", name.len()))
            .map_err(|error| error.with_hint(format!("a snapshot of {volume} has room for {room}"))),
        () => Ok(()),
    }
}
