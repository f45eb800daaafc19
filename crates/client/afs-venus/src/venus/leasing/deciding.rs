//! Decision of a change of names under a lease: what the server's reply will be, and the entry in the journal.

use std::sync::Arc;

use afs_wire::fs::{self, CallBack, Change, ChangeReply, FileKind, Status};
use afs_wire::ids::{Fid, FileTime, Rights};

use super::plan::Plan;
use crate::calls::CallReply;
use crate::counters::count;
use crate::key::Key;
use crate::leases::{Decided, Entry, Lease, New, NewObject, Taken};
use crate::location::Volume;
use crate::promises::ReplyOrigin;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Seconds for which an object that was made under a lease is promised before the server has been told of it.
const PROMISED: u32 = 120;

/// What is required of a user who decides names: what a server requires for a lease.
fn may_decide(rights: Rights) -> bool {
    [Rights::LOOKUP, Rights::INSERT, Rights::DELETE, Rights::WRITE]
        .into_iter()
        .all(|right| rights.contains(right))
}

impl Venus {
    /// Decides a change of names in a directory for a caller that alone changes names there. Unless it `replaces` what has a name, it does
    /// not. `None`: a single call decides.
    pub(in crate::venus) async fn decide(
        &self,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        replaces: bool,
        change: impl Fn() -> Change,
    ) -> Option<CallReply<ChangeReply>> {
        let first = || self.first_of_lease(dir, volume, &change());
        let mut lease = self.lease_of(dir, volume, first).await?;
        let change = change();
        let (mut plan, mut taken) = self.take_for(&lease, dir, volume, replaces, &change).await?;
        // Boxed: it is rare, and each change of names would have room for it on its stack.
        if taken == Taken::UsedUp && Box::pin(self.borrow_more(&lease, plan.cost, plan.new)).await {
            (plan, taken) = self.take_for(&lease, dir, volume, replaces, &change).await?;
        }
        if taken == Taken::UsedUp {
            lease = Box::pin(self.next_lease(&lease, dir, volume)).await?;
            (plan, taken) = self.take_for(&lease, dir, volume, replaces, &change).await?;
        }
        let Taken::Fid(fid) = taken else {
            if taken == Taken::UsedUp {
                self.end_lease(&lease).await;
            }
            return None;
        };
        let reply = self.decided(&lease, dir, plan, fid, change)?;
        if !lease.holds(self.now()) {
            // It may have ended before this was decided: nobody waits for its recall any more.
            self.settle(&lease).await.ok();
        }
        count(&self.counters.changes_decided);
        self.send_soon(&lease);
        Some(reply)
    }

    /// What the change does, and what it takes of what is lent. `None`: a single call decides.
    async fn take_for(
        &self,
        lease: &Arc<Lease>,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        replaces: bool,
        change: &Change,
    ) -> Option<(Plan, Taken)> {
        if lease.journal(|journal| journal.is_full()) {
            self.settle(lease).await.ok()?;
        }
        if !self.rights_in(dir, volume, may_decide).await.is_ok_and(may_decide) {
            return None;
        }
        let plan = self.plan(dir, volume, change).filter(|plan| replaces || plan.unlinked.is_none())?;
        if let Some(into) = &plan.into
            && !self.rights_in(into, volume, may_decide).await.is_ok_and(may_decide)
        {
            return None;
        }
        let taken = lease.take(plan.cost, plan.new);
        Some((plan, taken))
    }

    /// Adds the change to the journal.
    fn decided(
        &self,
        lease: &Arc<Lease>,
        dir: &Arc<Vnode>,
        mut plan: Plan,
        fid: Fid,
        change: Change,
    ) -> Option<CallReply<ChangeReply>> {
        let time = self.time_after(std::iter::once(dir).chain(&plan.into));
        let dir_status = next_status(dir, plan.subdirectories, time)?;
        let into_status = match &plan.into {
            Some(into) => next_status(into, 0, time)?,
            None => dir_status,
        };
        let token = self.token_for(dir.key.cell);
        let (vnode, status) = match (plan.linked.take(), plan.new) {
            (Some(linked), _) => linked,
            (None, New::Nothing) => (dir.clone(), Status::default()),
            (None, New::File | New::Directory) => {
                let (kind, length) = (plan.kind, plan.length);
                let (mode, time) = (plan.set.mode.unwrap_or_default(), plan.set.mod_time.unwrap_or(time));
                let new = NewObject { kind, fid, dir: dir.key.fid, length, mode, time };
                let status = lease.models(|models| models.new_object(token, &new))?;
                (self.vnode(Key::new(dir.key.cell, fid)), status)
            }
        };
        if plan.new != New::Nothing {
            plan.concerns.push(vnode.key);
        }
        // A rename within its directory is no change of the object.
        let changed = match plan.into {
            Some(_) => plan.concerns.clone(),
            None => [dir.key, vnode.key].into_iter().chain(plan.unlinked).collect(),
        };
        let callback = CallBack { expires_in: lease.callback.expires_in.min(PROMISED), ..lease.callback };
        let value = reply_to(&change, (fid, status), [dir_status, into_status], callback, lease)?;
        let server = lease.server.clone();
        let (serial, started) = (self.promises.serial(), self.now());
        let reply = CallReply { value, server, serial, started, token, follows: false };
        let entry = Entry {
            user: self.context.user,
            since: started,
            object: fid,
            time,
            decided: Decided::Change(change),
            vnode: vnode.clone(),
            dirs: [(dir.clone(), dir_status.data_version)]
                .into_iter()
                .chain(plan.into.map(|into| (into, into_status.data_version)))
                .collect(),
            unlinked: plan.unlinked,
            concerns: plan.concerns,
            cost: plan.cost,
        };
        if !lease.push(entry) {
            return None;
        }
        self.decided_at(time, changed);
        if plan.new != New::Nothing {
            self.leases.made(lease, vnode.key);
            // As the server will have it.
            vnode.state().decided_at = status.client_mod_time;
        }
        if plan.kind == FileKind::Symlink {
            // The reply to this change brings no promise, and nothing would be promised.
            self.record_link(lease, &vnode, &status, &callback, &reply.origin());
        }
        Some(reply)
    }

    /// Notes the time of a change of these objects, which they are shown with until the server's is known.
    pub(super) fn decided_at(&self, time: FileTime, changed: impl IntoIterator<Item = Key>) {
        let known = changed.into_iter().filter_map(|key| self.vnodes.peek(key));
        known.for_each(|vnode| vnode.state().decided_at = time);
    }

    /// The time of a change of these objects: the present, and later than that of their last one, as the server requires.
    pub(super) fn time_after<'a>(&self, changed: impl IntoIterator<Item = &'a Arc<Vnode>>) -> FileTime {
        let last = |vnode: &Arc<Vnode>| {
            let state = vnode.state();
            state.status.map_or(state.decided_at, |status| status.server_mod_time.max(state.decided_at))
        };
        changed.into_iter().map(|vnode| last(vnode).after(1)).fold(self.time(), FileTime::max)
    }

    fn record_link(
        &self,
        lease: &Lease,
        vnode: &Arc<Vnode>,
        status: &Status,
        callback: &CallBack,
        origin: &ReplyOrigin<'_>,
    ) {
        self.promises.record_reply(&lease.volume, vnode, status, callback, &lease.sync, origin);
    }
}

/// The status of the directory after a change of its names.
fn next_status(dir: &Vnode, subdirectories: i32, time: FileTime) -> Option<Status> {
    let status = dir.state().status?;
    Some(Status {
        data_version: status.data_version.next(),
        link_count: status.link_count.saturating_add_signed(subdirectories),
        client_mod_time: time,
        ..status
    })
}

/// The reply of the server to a change that succeeds.
fn reply_to(
    change: &Change,
    (fid, status): (Fid, Status),
    [dir_status, new_dir_status]: [Status; 2],
    callback: CallBack,
    lease: &Lease,
) -> Option<ChangeReply> {
    let sync = lease.sync;
    let created = fs::CreateReply { fid, status, dir_status, callback, sync };
    let removed = fs::RemoveReply { dir_status, sync };
    Some(match change {
        Change::CreateFile(_) => ChangeReply::CreateFile(created),
        Change::MakeDir(_) => ChangeReply::MakeDir(created),
        Change::Symlink(_) => ChangeReply::Symlink(fs::SymlinkReply { fid, status, dir_status, sync }),
        Change::RemoveFile(_) => ChangeReply::RemoveFile(removed),
        Change::RemoveDir(_) => ChangeReply::RemoveDir(removed),
        Change::Rename(_) => {
            ChangeReply::Rename(fs::RenameReply { old_dir_status: dir_status, new_dir_status, sync })
        }
        Change::Link(_) => ChangeReply::Link(fs::LinkReply { status, dir_status, sync }),
        Change::Store(_) | Change::StoreStatus(_) => return None,
    })
}
