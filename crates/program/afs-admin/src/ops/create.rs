//! `vos create`: creates an empty volume with its entry.

use afs_rpc::CallError;
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, NameChars, SiteFlags};
use afs_wire::vol::{VolumeFlags, VolumeInfo};
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::calls::Transaction;
use crate::error::{AdminError, AdminResult, Cause};
use crate::group::check_name;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};

/// Parameters of a new volume.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// Its name: 1 to 22 characters.
    pub name: String,
    /// Its site.
    pub place: ServerPartition,
    /// Quota in units of 1024 bytes; 0 is none.
    pub quota: i32,
    /// Its id; `None` is the next free one.
    pub id: Option<VolumeId>,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CreatePlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    place: ServerPartition,
    quota: i32,
    #[serde(with = "crate::wire_numbers::volume")]
    read_only: VolumeId,
    #[serde(with = "crate::wire_numbers::volume")]
    backup: VolumeId,
}

/// Steps of a creation. The entry is the turning point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The volume is made at its server.
    Make,
    /// It is entered into the location database.
    Enter,
}

impl Admin {
    /// Creates a volume and its entry. Returns its id.
    ///
    /// # Errors
    /// A name that is taken or invalid, no such partition, or the servers' refusal; nothing is left behind
    /// then.
    pub async fn create(&self, options: CreateOptions) -> AdminResult<VolumeId> {
        let doing = format!("Could not create volume {}", options.name);
        check_name(&doing, &options.name)?;
        self.check_room(&doing, options.place, 0).await?;
        let taken = |with: String| AdminError::refused(&doing, with).with_hint("give another one");
        if self.entry_named(&options.name).await?.is_some() {
            return Err(taken(format!("Volume {} already exists", options.name)));
        }
        let volume = match options.id {
            Some(id) if self.entry(id).await?.is_some() => {
                return Err(taken(format!("the number {id} is in use")));
            }
            Some(id) => id,
            None => self.new_id().await?,
        };
        let (read_only, backup) = (self.new_id().await?, self.new_id().await?);
        let CreateOptions { name, place, quota, .. } = options;
        let mut plan = CreatePlan { volume, name, step: Step::Make, place, quota, read_only, backup };
        let job = Job::begin(self, &plan.clone().into()).await?;
        let made = plan.run(self, &job).await;
        match made {
            Ok(()) => job.end().await.map(|()| volume),
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

impl CreatePlan {
    pub(crate) fn word(&self) -> &'static str {
        "create"
    }

    pub(crate) fn says(&self) -> String {
        match self.step {
            Step::Make => format!("making {} on {}", self.name, self.place),
            Step::Enter => format!("entering {} into the VLDB", self.name),
        }
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        let held =
            admin.make(self.place, self.volume, &self.name, VolumeKind::ReadWrite, VolumeId(0)).await?;
        let set_up = self.set_up(admin, job, &held).await;
        held.end_after(set_up).await
    }

    async fn set_up(&mut self, admin: &Admin, job: &Job, held: &Transaction) -> AdminResult {
        held.set_info(VolumeInfo { quota_max: self.quota, ..VolumeInfo::unchanged() }).await?;
        held.set_flags(VolumeFlags(0)).await?;
        self.step = Step::Enter;
        job.step(&Plan::from(self.clone())).await?;
        admin.create_entry(&self.entry()).await
    }

    fn entry(&self) -> Entry {
        Entry {
            name: NameChars::truncated(self.name.as_bytes()),
            sites: BoundedVec::first_of([self.place.site(SiteFlags::RW_VOLUME)]),
            ids: [self.volume, self.read_only, self.backup],
            flags: EntryFlags::RW_EXISTS,
            ..Entry::default()
        }
    }

    /// Completes a volume with an entry, deletes one without.
    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        if admin.entry(self.volume).await?.is_some_and(|e| e.name == self.entry().name) {
            // A transaction that was left open keeps the volume from its clients.
            admin.break_transactions(self.place, self.volume).await?;
            job.end().await?;
            return Ok(Outcome::Completed);
        }
        admin.delete_volume(self.place, self.volume, true).await?;
        job.end().await?;
        Ok(Outcome::Undone)
    }
}

impl Admin {
    /// After an error: undoes or completes the operation, and adds the result to the error.
    pub(crate) async fn give_up(&self, plan: Plan, job: Job, error: AdminError) -> AdminError {
        if matches!(error.cause, Cause::Journal(_)) {
            return error;
        }
        let name = plan.subject().1.to_owned();
        self.progress().step(&format!("undoing what was begun with {name}"));
        let kind = error.is_refusal();
        match plan.resume(self, job).await {
            Ok(Outcome::Undone) if kind => error,
            Ok(Outcome::Undone) => error.with_hint("everything is as it was before"),
            Ok(Outcome::Completed) => error.with_hint("the operation was completed all the same"),
            Err(after) => {
                let silent = matches!(
                    &after.cause,
                    Cause::Call { error: CallError::Unreachable { .. } | CallError::Timeout, .. }
                );
                let why = if silent { "while a server does not answer" } else { "now" };
                error.with_hint(format!(
                    "this cannot be undone {why} ({after}); it is in the journal, and `andrew vos resume {name}` \
                     or the cell's servers end it later"
                ))
            }
        }
    }
}
