//! First half of a move, up to the switch.

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::future::{Either, select};
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::{EntryFlags, LockOperation};
use afs_wire::vol::{RestoreCookie, VolumeFlags};

use super::{MovePlan, Moved, Step};
use crate::calls::{Attach, Transaction, UNPUBLISHED, cookie};
use crate::error::{AdminError, AdminResult};
use crate::group::home;
use crate::journal::Job;
use crate::plan::Plan;
use crate::{Admin, Snapshot};

/// Most increments sent from the clone before the volume is held for the last one.
const INCREMENTS_MAX: u32 = 5;
/// An increment that took less is the last one from the clone: the rest takes no longer.
const SHORT: Duration = Duration::from_secs(3);
/// Safety margin for clocks of whole seconds.
const MARGIN: u32 = 2;

impl MovePlan {
    pub(super) async fn run(
        &mut self,
        admin: &Admin,
        job: &Job,
        snapshots: &[Snapshot],
    ) -> AdminResult<Moved> {
        self.lock(admin).await?;
        if !self.live {
            self.clone_source(admin, job).await?;
        }
        let target = self.make_target(admin, job).await?;
        self.send_snapshots(admin, &target, snapshots).await?;
        if !self.live {
            self.send_clone(admin, job, &target).await?;
        }
        let busy_since = admin.env().now();
        // Held until its clients have been notified of the new site: they wait, and see no volume off line.
        let source = self.close_source(admin, job, &target).await?;
        self.next(Step::Switch, job).await?;
        self.switch(admin, &target).await?;
        let busy = admin.env().now() - busy_since;
        self.next(Step::Forget, job).await?;
        self.forget_held(&source).await?;
        self.next(Step::Clean, job).await?;
        self.clean(admin).await?;
        Ok(Moved {
            volume: self.volume,
            from: self.from,
            to: self.to,
            increments: self.increments,
            busy_ms: u64::try_from(busy.as_millis()).unwrap_or(u64::MAX),
            backup: self.backup.0 != 0,
            snapshots: self.shipped_count(),
        })
    }

    /// Records a step; its effect may follow.
    pub(super) async fn next(&mut self, step: Step, job: &Job) -> AdminResult {
        let before = std::mem::replace(&mut self.step, step);
        let written = job.step(&Plan::from(self.clone())).await;
        if written.is_err() {
            self.step = before;
        }
        written
    }

    async fn lock(&mut self, admin: &Admin) -> AdminResult {
        let entry = admin.lock_entry(self.volume, &self.name, LockOperation::MOVE).await?;
        if home(&entry) == Some(self.from) {
            let exists = entry.flags.contains(EntryFlags::BACK_EXISTS);
            self.backup = if exists { entry.id(VolumeKind::Backup) } else { VolumeId(0) };
            return Ok(());
        }
        Err(AdminError::failed(
            format!("Could not move volume {}", self.name),
            "somebody else moved it meanwhile",
        ))
    }

    async fn clone_source(&mut self, admin: &Admin, job: &Job) -> AdminResult {
        self.clone = admin.new_id().await?;
        self.next(Step::Clone, job).await?;
        let source = admin.take_existing(self.from, self.volume, Attach::BUSY).await?;
        let cloned = source.clone_as(self.clone, CLONE_NAME, VolumeKind::ReadOnly).await;
        source.end_after(cloned).await
    }

    async fn make_target(&mut self, admin: &Admin, job: &Job) -> AdminResult<Transaction> {
        self.next(Step::Make, job).await?;
        // Left by an earlier attempt.
        admin.delete_volume(self.to, self.volume, false).await?;
        // With its own id as parent it gets no root directory: the dump brings one.
        let target = admin.make(self.to, self.volume, &self.name, VolumeKind::ReadWrite, self.volume).await?;
        target.set_flags(UNPUBLISHED).await?;
        admin.carry_placement_first(self.from.server, self.volume, &target).await?;
        Ok(target)
    }

    async fn send_clone(&mut self, admin: &Admin, job: &Job, target: &Transaction) -> AdminResult {
        self.next(Step::Send, job).await?;
        let mut since = UnixSeconds(0);
        loop {
            let began = admin.env().now();
            let held = admin.take_existing(self.from, self.clone, Attach::OFFLINE).await?;
            let sent = self.send_held_clone(admin, &held, since, target).await;
            // The server deletes it by itself if it is left behind.
            let state = held.end_after(sent).await?;
            self.sent_until = state;
            since = state;
            if self.increments >= INCREMENTS_MAX || admin.env().now() - began < SHORT {
                return Ok(());
            }
            self.next(Step::Increment, job).await?;
            let source = admin.take_existing(self.from, self.volume, Attach::BUSY).await?;
            source.end_after(source.reclone(self.clone).await).await?;
            self.increments += 1;
        }
    }

    async fn send_held_clone(
        &self,
        admin: &Admin,
        held: &Transaction,
        since: UnixSeconds,
        target: &Transaction,
    ) -> AdminResult<UnixSeconds> {
        held.set_flags(UNPUBLISHED).await?;
        let state = adjusted(held.status().await?.creation_date);
        if since.0 == 0 {
            self.send_state(admin, held, self.newest_shipped(), target).await?;
        } else {
            admin.forward_watched(held, since, target, self.cookie()).await?;
        }
        Ok(state)
    }

    /// Sends the last increment while the clients wait, and takes the source out of service.
    async fn close_source(
        &mut self,
        admin: &Admin,
        job: &Job,
        target: &Transaction,
    ) -> AdminResult<Transaction> {
        self.next(Step::Increment, job).await?;
        let source = admin.take_existing(self.from, self.volume, Attach::BUSY).await?;
        self.close_held(admin, job, &source, target).await?;
        Ok(source)
    }

    async fn close_held(
        &mut self,
        admin: &Admin,
        job: &Job,
        source: &Transaction,
        target: &Transaction,
    ) -> AdminResult {
        if self.sent_until.0 == 0 {
            self.send_state(admin, source, self.newest_shipped(), target).await?;
        } else {
            admin.forward_watched(source, self.sent_until, target, self.cookie()).await?;
        }
        self.increments += 1;
        // Here, because until the source is held its setting may change.
        admin.carry_settings(self.from.server, self.volume, target).await?;
        self.next(Step::Seal, job).await?;
        // In the same transaction as the last increment: if the server had ended it in between, and clients
        // had written, this would fail.
        source.set_flags(VolumeFlags::OUT_OF_SERVICE).await?;
        target.set_flags(VolumeFlags::OUT_OF_SERVICE).await
    }

    pub(super) fn cookie(&self) -> RestoreCookie {
        cookie(&self.name, VolumeKind::ReadWrite, self.volume)
    }
}

impl Admin {
    /// As [`Transaction::forward`], with progress reports: what the source has sent is in its list of
    /// transactions, in packets.
    pub(crate) async fn forward_watched(
        &self,
        from: &Transaction,
        since: UnixSeconds,
        to: &Transaction,
        cookie: RestoreCookie,
    ) -> AdminResult {
        // Determining the changes takes the server as long as sending them.
        let size = if since.0 == 0 { self.dump_size(from, since).await } else { None };
        let watch = async {
            loop {
                self.env().sleep(WATCH_INTERVAL).await;
                let Ok(all) = self.transactions(from.place.server).await else { continue };
                let sent = all.iter().find(|t| t.id == from.id && t.call_valid);
                if let Some(packets) = sent.and_then(|t| u64::try_from(t.transmit_next).ok()) {
                    let bytes = packets * PACKET_BYTES;
                    self.progress().bytes(size.map_or(bytes, |size| bytes.min(size)), size);
                }
            }
        };
        match select(from.forward(since, to, cookie), watch).await {
            Either::Left(sent) => {
                if let (Ok(()), Some(size)) = (&sent, size) {
                    self.progress().bytes(size, Some(size));
                }
                sent
            }
            Either::Right(never) => never,
        }
    }
}

/// A time from which on changes may have been missed.
pub(crate) fn adjusted(date: UnixSeconds) -> UnixSeconds {
    UnixSeconds(date.0.saturating_sub(MARGIN))
}

const CLONE_NAME: &str = "move-clone-temp";
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Approximate payload of one packet.
const PACKET_BYTES: u64 = 1412;
