//! `vos copy` and `vos shadow`: creates a second volume with the state of the first.

use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, NameChars, SiteFlags};
use afs_wire::vol::VolumeFlags;
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::Outcome;
use super::move_::adjusted;
use crate::calls::{Attach, Transaction, UNPUBLISHED, cookie};
use crate::error::{AdminError, AdminResult};
use crate::group::check_name;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, ServerPartition};

/// Source and target of a copy.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Name or id of the volume.
    pub volume: String,
    /// Name of the copy.
    pub name: String,
    /// Site of the copy.
    pub to: ServerPartition,
    /// Create a read-only volume.
    pub read_only: bool,
    /// Leave it off line.
    pub offline: bool,
    /// Send it without a clone, while the source's clients wait.
    pub live: bool,
    /// Create no entry: a shadow, with this id or the source's if `id` is `None`.
    pub shadow: bool,
    /// Id of the copy; `None` is the next free one, and for a shadow the source's.
    pub id: Option<VolumeId>,
    /// Send only what changed since an earlier shadow.
    pub incremental: bool,
}

/// Result of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Id of the copy.
    pub volume: VolumeId,
    /// Site of the source.
    pub from: ServerPartition,
}

/// See [`Plan`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CopyPlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    from: ServerPartition,
    to: ServerPartition,
    /// Id and name of the copy.
    #[serde(with = "crate::wire_numbers::volume")]
    copy: VolumeId,
    copy_name: String,
    read_only: bool,
    offline: bool,
    shadow: bool,
    incremental: bool,
    /// The id of the clone that is sent, or 0.
    #[serde(with = "crate::wire_numbers::volume")]
    clone: VolumeId,
    #[serde(with = "crate::wire_numbers::date")]
    sent_until: UnixSeconds,
}

/// Steps of a copy. Before the entry exists it is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The source is cloned and sent to a new volume.
    Send,
    /// The copy goes on line and gets its entry.
    Enter,
}

impl Admin {
    /// Copies a volume. The source stays in use all the time, except for a moment with `live`.
    ///
    /// # Errors
    /// No such volume or site, a name that is taken, no space, or a server that fails; nothing is left behind
    /// then.
    pub async fn copy_volume(&self, options: CopyOptions) -> AdminResult<Copied> {
        let doing = format!("Could not copy volume {}", options.volume);
        let (group, from) = self.read_write(&doing, &options.volume).await?;
        check_name(&doing, &options.name)?;
        let info = self.free_volume_at(from, group.id()).await?;
        self.check_room(&doing, options.to, info.size).await?;
        if !options.shadow && self.entry_named(&options.name).await?.is_some() {
            return Err(AdminError::refused(doing, format!("there is a volume {} already", options.name)));
        }
        let copy = match options.id {
            Some(id) => id,
            None if options.shadow => group.id(),
            None => self.new_id().await?,
        };
        if copy == group.id() && options.to.server == from.server {
            return Err(AdminError::refused(
                doing,
                "a shadow of the same number has to be on another server",
            ));
        }
        let plan = CopyPlan {
            volume: group.id(),
            name: group.name(),
            step: Step::Send,
            from,
            to: options.to,
            copy,
            copy_name: options.name,
            read_only: options.read_only,
            offline: options.offline,
            shadow: options.shadow,
            incremental: options.incremental,
            clone: if options.live { VolumeId(0) } else { self.new_id().await? },
            sent_until: UnixSeconds(0),
        };
        let job = Job::begin(self, &plan.clone().into()).await?;
        let mut plan = plan;
        match plan.run(self, &job).await {
            Ok(()) => {
                job.end().await?;
                Ok(Copied { volume: copy, from })
            }
            Err(error) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

impl CopyPlan {
    pub(crate) fn others(&self) -> Vec<VolumeId> {
        vec![self.copy, self.clone]
    }

    pub(crate) fn word(&self) -> &'static str {
        if self.shadow { "shadow" } else { "copy" }
    }

    pub(crate) fn says(&self) -> String {
        match self.step {
            Step::Send => {
                format!("copying {} from {} to {} on {}", self.name, self.from, self.copy_name, self.to)
            }
            Step::Enter => format!("bringing {} on line", self.copy_name),
        }
    }

    fn kind(&self) -> VolumeKind {
        if self.read_only { VolumeKind::ReadOnly } else { VolumeKind::ReadWrite }
    }

    async fn run(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        if self.clone.0 != 0 {
            let source = admin.take_existing(self.from, self.volume, Attach::BUSY).await?;
            let cloned = source.clone_as(self.clone, CLONE_NAME, VolumeKind::ReadOnly).await;
            source.end_after(cloned).await?;
        }
        let (target, since) = self.open_target(admin).await?;
        let sent = self.send(admin, job, &target, since).await;
        target.end_after(sent).await?;
        self.enter(admin).await
    }

    /// The existing copy, for an incremental one, or a new one.
    async fn open_target(&self, admin: &Admin) -> AdminResult<(Transaction, UnixSeconds)> {
        if self.incremental
            && let Some(held) = admin.take(self.to, self.copy, Attach::OFFLINE).await?
        {
            let status = held.status().await;
            return match status {
                Ok(status) => Ok((held, adjusted(status.update_date))),
                Err(error) => held.end_after(Err(error)).await,
            };
        }
        admin.delete_volume(self.to, self.copy, false).await?;
        let held = admin.make(self.to, self.copy, &self.copy_name, self.kind(), self.copy).await?;
        let set = held.set_flags(UNPUBLISHED).await;
        match set {
            Ok(()) => Ok((held, UnixSeconds(0))),
            Err(error) => held.end_after(Err(error)).await,
        }
    }

    async fn send(
        &mut self,
        admin: &Admin,
        job: &Job,
        target: &Transaction,
        since: UnixSeconds,
    ) -> AdminResult {
        let what = if self.clone.0 == 0 { self.volume } else { self.clone };
        let attach = if self.clone.0 == 0 { Attach::BUSY } else { Attach::OFFLINE };
        let source = admin.take_existing(self.from, what, attach).await?;
        let sent = async {
            if self.clone.0 != 0 {
                source.set_flags(UNPUBLISHED).await?;
            }
            let cookie = cookie(&self.copy_name, self.kind(), VolumeId(0));
            admin.carry_placement_first(self.from.server, self.volume, target).await?;
            admin.forward_watched(&source, since, target, cookie).await?;
            admin.carry_settings(self.from.server, self.volume, target).await
        };
        let sent = sent.await;
        source.end_after(sent).await?;
        self.step = Step::Enter;
        job.step(&Plan::from(self.clone())).await?;
        target.set_flags(if self.offline { VolumeFlags::OUT_OF_SERVICE } else { VolumeFlags(0) }).await
    }

    /// Idempotent.
    async fn enter(&self, admin: &Admin) -> AdminResult {
        if !self.shadow {
            let read_only = usize::from(self.read_only);
            let mut ids = [VolumeId(0); 3];
            ids[0] = self.copy;
            let flags = [EntryFlags::RW_EXISTS, EntryFlags::RO_EXISTS][read_only];
            let site = [SiteFlags::RW_VOLUME, SiteFlags::RO_VOLUME][read_only];
            let entry = Entry {
                name: NameChars::truncated(self.copy_name.as_bytes()),
                sites: BoundedVec::first_of([self.to.site(site)]),
                ids,
                flags,
                ..Entry::default()
            };
            admin.create_entry(&entry).await?;
        }
        self.delete_clone(admin).await
    }

    async fn delete_clone(&self, admin: &Admin) -> AdminResult {
        if self.clone.0 == 0 {
            return Ok(());
        }
        admin.delete_volume(self.from, self.clone, true).await.map(drop)
    }

    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        // Clients of the source must not wait for a copy that is not being made any more.
        admin.break_transactions(self.from, self.volume).await?;
        let outcome = match self.step {
            Step::Send => {
                if !self.incremental {
                    admin.delete_volume(self.to, self.copy, true).await?;
                }
                self.delete_clone(admin).await?;
                Outcome::Undone
            }
            Step::Enter => {
                if !self.offline {
                    admin.publish(self.to, self.copy, Attach::OFFLINE.breaking(true)).await?;
                }
                self.enter(admin).await?;
                Outcome::Completed
            }
        };
        job.end().await?;
        Ok(outcome)
    }
}

const CLONE_NAME: &str = "copy-clone-temp";
