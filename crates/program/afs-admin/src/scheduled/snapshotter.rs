//! Background task of a file server that creates and deletes the scheduled snapshots of its volumes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_wire::error::AbortCode;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::operations::SnapshotSchedule;
use afs_wire::vol::VolumeInfo;

use super::day::Day;
use super::keep::expired;
use crate::error::AdminResult;
use crate::{Admin, ServerPartition};

/// Time between two runs: the longest time that a new volume has no snapshot, and that a day's is late.
const INTERVAL: Duration = Duration::from_secs(300);

/// Creates the snapshots that are due, and deletes those that the schedule does not keep. One in each file
/// server's process.
pub struct Snapshotter {
    admin: Admin,
    server: Ipv4Addr,
}

/// Result of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRun {
    /// Full names of created snapshots.
    pub made: Vec<String>,
    /// Full names of deleted snapshots.
    pub removed: Vec<String>,
}

/// A read-write volume with the days of its scheduled snapshots.
struct Volume {
    name: String,
    updated: UnixSeconds,
    /// Each with its creation time.
    days: BTreeMap<Day, UnixSeconds>,
}

impl Snapshotter {
    /// For the volumes of `server`, with the rights of `admin`, which must be an administrator of the cell.
    #[must_use]
    pub fn new(admin: Admin, server: Ipv4Addr) -> Self {
        Self { admin, server }
    }

    /// Runs periodically until it is dropped. To be spawned.
    pub async fn run(self) {
        loop {
            self.admin.env().sleep(INTERVAL).await;
            let now = UnixSeconds(self.admin.env().wall().secs_u32());
            match self.run_once(now).await {
                Ok(done) if done == SnapshotRun::default() => {}
                Ok(done) => tracing::info!(made = ?done.made, removed = ?done.removed, "scheduled snapshots"),
                Err(error) => tracing::debug!(%error, "scheduled snapshots have to wait"),
            }
        }
    }

    /// Does the work that is due at a time. A volume on which something fails is left for the next run:
    /// another operation may hold it.
    ///
    /// # Errors
    /// The database servers or this server do not reply.
    pub async fn run_once(&self, now: UnixSeconds) -> AdminResult<SnapshotRun> {
        let mut done = SnapshotRun::default();
        let Some(schedule) = self.admin.snapshot_schedule().await? else { return Ok(done) };
        if schedule == SnapshotSchedule::default() {
            return Ok(done);
        }
        for partition in self.admin.partitions(self.server).await? {
            let all = match self.admin.volumes_on(ServerPartition::new(self.server, partition)).await {
                // The others have theirs.
                Err(error) if error.code() == Some(AbortCode::VOFFLINE) => continue,
                listed => listed?,
            };
            for volume in volumes(&all).into_values() {
                self.one(&volume, &schedule, Day::of(now), &mut done).await;
            }
        }
        Ok(done)
    }

    async fn one(&self, volume: &Volume, schedule: &SnapshotSchedule, today: Day, done: &mut SnapshotRun) {
        let name = &volume.name;
        let mut days: BTreeSet<Day> = volume.days.keys().copied().collect();
        if volume.is_due(today) {
            match self.admin.create_snapshot(name, &today.to_string()).await {
                Ok(_) => {
                    days.insert(today);
                    done.made.push(format!("{name}.{today}"));
                }
                Err(error) => return tracing::debug!(%error, "a scheduled snapshot has to wait"),
            }
        }
        for day in expired(&days, schedule) {
            match self.admin.remove_snapshot(name, &day.to_string()).await {
                Ok(()) => done.removed.push(format!("{name}.{day}")),
                Err(error) => return tracing::debug!(%error, "a scheduled snapshot is kept for now"),
            }
        }
    }
}

impl Volume {
    /// Whether there is none of today or a later day, and something changed since the last.
    fn is_due(&self, today: Day) -> bool {
        match self.days.last_key_value() {
            None => true,
            Some((last, made)) => *last < today && self.updated >= *made,
        }
    }
}

/// The read-write volumes among all, each with its scheduled snapshots.
fn volumes(all: &[VolumeInfo]) -> BTreeMap<VolumeId, Volume> {
    let is = |info: &&VolumeInfo, kind: VolumeKind| info.kind.check() == Some(kind);
    let mut found: BTreeMap<VolumeId, Volume> = all
        .iter()
        .filter(|info| is(info, VolumeKind::ReadWrite))
        .map(|info| {
            let name = info.name.to_string();
            (info.id, Volume { name, updated: info.update_date, days: BTreeMap::new() })
        })
        .collect();
    for info in all.iter().filter(|info| is(info, VolumeKind::Backup)) {
        let Some(volume) = found.get_mut(&info.parent_id) else { continue };
        let name = info.name.to_string();
        let day =
            name.strip_prefix(&*volume.name).and_then(|rest| rest.strip_prefix('.')).and_then(Day::parse);
        if let Some(day) = day {
            volume.days.insert(day, info.creation_date);
        }
    }
    found
}
