//! `vos move`: moves a volume to another partition while it is in use.
//!
//! First the present content is sent from a clone, while clients go on; then the changes since, from the
//! updated clone, until little is left. Only then the volume is busy, for the last increment. One write to
//! the location database is the switch: before it everything is undone, after it everything is completed.

mod forward;
mod run;
mod snapshots;
mod undo;

pub(crate) use run::adjusted;

use afs_wire::ids::{KindNumber, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::error::{AdminError, AdminResult};
use crate::journal::Job;
use crate::{Admin, ServerPartition};

/// Source and target of a move.
#[derive(Clone, Debug)]
pub struct MoveOptions {
    /// Name or id of the read-write volume.
    pub volume: String,
    /// Its expected site; `None` accepts any.
    pub from: Option<ServerPartition>,
    /// The target site.
    pub to: ServerPartition,
    /// Send it in one go while its clients wait: no clone, no increments.
    pub live: bool,
    /// Delete its snapshots. Without this a volume with snapshots (other than dated ones) is not moved to a
    /// server of another maker; to one of ours they move with it.
    pub drop_snapshots: bool,
}

/// Result of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The volume.
    pub volume: VolumeId,
    /// Its old site.
    pub from: ServerPartition,
    /// Its new site.
    pub to: ServerPartition,
    /// Number of increments sent, the last one included.
    pub increments: u32,
    /// How long its clients had to wait, in milliseconds.
    pub busy_ms: u64,
    /// Whether its backup volume was created anew.
    pub backup: bool,
    /// Number of snapshots that moved with it.
    pub snapshots: usize,
}

/// See [`Plan`](crate::plan::Plan).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MovePlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    from: ServerPartition,
    to: ServerPartition,
    live: bool,
    /// The id of the clone that is sent from; 0 before there is one.
    #[serde(with = "crate::wire_numbers::volume")]
    clone: VolumeId,
    /// The group's backup volume if it exists, else 0.
    #[serde(with = "crate::wire_numbers::volume")]
    backup: VolumeId,
    increments: u32,
    /// Changes after this time are still to be sent.
    #[serde(with = "crate::wire_numbers::date")]
    sent_until: UnixSeconds,
    /// Ids of its snapshots, oldest first.
    #[serde(default)]
    snapshots: Vec<u32>,
    /// Whether they are deleted instead of moved.
    #[serde(default)]
    drop_snapshots: bool,
}

/// Steps of a move. Up to `Seal` it is undone; from `Switch` on it is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
    /// The source is cloned.
    Clone,
    /// An empty volume is created at the target.
    Make,
    /// The clone is sent.
    Send,
    /// The changes since are sent, as often as needed; at last with the source held.
    Increment,
    /// The source is taken out of service for good: the target is complete.
    Seal,
    /// The target goes on line and the location database has its site.
    Switch,
    /// The source's clients are notified, and the source is deleted.
    Forget,
    /// Clone and old backup volume are deleted, the backup volume is created anew, the entry is unlocked.
    Clean,
    /// Everything is restored.
    Undo,
}

impl Admin {
    /// Moves a volume.
    ///
    /// # Errors
    /// No such volume or site, no space, snapshots that would be lost, or a server that fails: then
    /// everything is as before, or will be when the servers needed for that reply; the error says which.
    pub async fn move_volume(&self, options: MoveOptions) -> AdminResult<Moved> {
        let doing = format!("Could not move volume {}", options.volume);
        let plan = self.plan_move(&doing, &options).await?;
        let mut plan = plan;
        let snapshots = self.plan_snapshots(&doing, &mut plan, options.drop_snapshots).await?;
        let job = Job::begin(self, &plan.clone().into()).await?;
        match plan.run(self, &job, &snapshots).await {
            Ok(moved) => job.end().await.map(|()| moved),
            Err(error) if plan.step == Step::Lock && error.is_refusal() => {
                job.end().await?;
                Err(error)
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }

    async fn plan_move(&self, doing: &str, options: &MoveOptions) -> AdminResult<MovePlan> {
        let (group, from) = self.read_write(doing, &options.volume).await?;
        Self::check_unlocked(&group.entry)?;
        if options.from.is_some_and(|named| named != from) {
            return Err(AdminError::refused(doing, format!("it is on {from}"))
                .with_hint("give that place, or only where it shall go"));
        }
        let to = options.to;
        if to == from {
            return Err(AdminError::refused(doing, format!("it is on {from} already")));
        }
        let info = self.free_volume_at(from, group.id()).await?;
        if info.kind != KindNumber::from(VolumeKind::ReadWrite) {
            let why = format!("it is a snapshot of volume {}, and goes where that goes", info.parent_id);
            return Err(AdminError::refused(doing, why).with_hint("move that volume"));
        }
        self.check_room(doing, to, info.size).await?;
        self.check_target(doing, to, group.id()).await?;
        let backup = if group.has(EntryFlags::BACK_EXISTS) { group.entry.ids[2] } else { VolumeId(0) };
        Ok(MovePlan {
            volume: group.id(),
            name: group.name(),
            step: Step::Lock,
            from,
            to,
            live: options.live,
            clone: VolumeId(0),
            backup,
            increments: 0,
            sent_until: UnixSeconds(0),
            snapshots: Vec::new(),
            drop_snapshots: options.drop_snapshots,
        })
    }

    /// A volume with that id at the target that is not in the location database may be a user's only copy.
    async fn check_target(&self, doing: &str, to: ServerPartition, volume: VolumeId) -> AdminResult {
        let Some(there) = self.volume_at(to, volume).await? else { return Ok(()) };
        if !there.in_use || there.destroy_me != 0 {
            return Ok(());
        }
        Err(AdminError::refused(doing, format!("{to} has a volume {volume} on line that is not in the VLDB"))
            .with_hint(format!(
                "look at it with `andrew vos listvol {}`, and remove it with `andrew vos zap` if it is old",
                to.server
            )))
    }
}

impl MovePlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        let snapshots = self.snapshots.iter().copied().map(VolumeId);
        [self.clone, self.backup].into_iter().chain(snapshots).collect()
    }

    pub(crate) fn word(&self) -> &'static str {
        "move"
    }

    pub(crate) fn says(&self) -> String {
        let Self { name, from, to, .. } = self;
        match self.step {
            Step::Lock => format!("locking {name}"),
            Step::Clone => format!("cloning {name} on {from}"),
            Step::Make => format!("making {name} on {to}"),
            Step::Send => format!("sending {name} from {from} to {to}"),
            Step::Increment => format!("sending what changed of {name} meanwhile ({})", self.increments + 1),
            Step::Seal => format!("closing {name} on {from}"),
            Step::Switch => format!("switching {name} to {to}"),
            Step::Forget => format!("deleting {name} on {from}"),
            Step::Clean => format!("clearing up after the move of {name}"),
            Step::Undo => format!("putting {name} back on line on {from}"),
        }
    }

    /// Undoes or completes.
    pub(crate) async fn resume(mut self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let outcome = match self.step {
            Step::Switch if self.is_to_be_undone(admin).await? => self.undo(admin, &job).await?,
            Step::Switch | Step::Forget | Step::Clean => self.complete(admin, &job).await?,
            _ => self.undo(admin, &job).await?,
        };
        job.end().await?;
        Ok(outcome)
    }
}
