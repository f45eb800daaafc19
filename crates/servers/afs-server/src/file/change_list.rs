//! ChangeList, a call of our own: changes of one volume in one transaction, in order, until one fails, and once however often the list is sent;
//! also those that were decided under a lease (docs/protocol extensions.md "ChangeList").

use std::sync::Arc;

use afs_rpc::{EnvExt, Table};
use afs_volume::{NumberedList, Sender, VolumeError, VolumeTx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, Change, ChangeReplies, LeaseId, ListedChange};
use afs_wire::ids::{Fid, FileTime};
use afs_wire::rpc::Request;
use afs_wire::xdr::Encode;

use super::broken::Broken;
use super::change::{Done, Ready};
use super::server::FileServer;
use crate::audit::{AuditName, AuditObject};
use crate::call_context::CallContext;
use crate::hosts::HostIdentity;
use crate::leases::Lease;
use crate::locks::Holder;
use crate::subject::Subject;
use crate::volume_states::Served;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::ChangeList| async move {
        // A task of its own: a list that was begun ends, also if the call is given up.
        let env = server.env.clone();
        let made = env.spawn_with_result(async move { server.change_list(&context, call).await });
        made.await.unwrap_or(Err(AbortCode::VRESTARTING))
    })
}

/// Changes of a list, as the single calls are recorded.
type Tried = Vec<(&'static str, AuditObject)>;
/// A change that was made, and by how many blocks the volume has grown with it.
type Grown = (Done, u64);

impl FileServer {
    async fn change_list(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::ChangeList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        if call.changes.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        if call.changes.iter().flat_map(|listed| listed.change.fids()).any(|fid| fid.volume != call.volume) {
            return Err(Errno::EXDEV.to_uae());
        }
        match call.under_lease {
            true => self.list_under_lease(context, call).await,
            false => self.list_of_calls(context, call).await,
        }
    }

    /// Changes that are made as single calls.
    async fn list_of_calls(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::ChangeList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        if call.changes.iter().any(|listed| listed.object != Fid::default()) {
            return Err(Errno::EINVAL.to_uae());
        }
        let fids: Vec<Fid> = call.changes.iter().flat_map(|listed| listed.change.fids()).collect();
        let (served, _) = self.unlent_volume(context, &fids, true).await?;
        let dirs: Vec<Option<Fid>> = call.changes.iter().map(|listed| directory_of(&listed.change)).collect();
        let (reply, _) = self.make_list(context, &served, call, None).await?;
        for (dir, made) in dirs.into_iter().zip(reply.done.iter()) {
            dir.into_iter().for_each(|dir| self.leases().note_change(dir, context.host.id()));
            if let fs::ChangeReply::MakeDir(made) = made {
                self.leases().note_made(made.fid, context.host.id());
            }
        }
        Ok(reply)
    }

    async fn list_under_lease(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::ChangeList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        let (served, before) = self.volume(context, Fid::root(call.volume), true)?;
        let held = self.leases().held(LeaseId(call.series.0), call.volume, context.host.id());
        let Some(lease) = held else { return self.reply_again_to(context, &served, &call).await };
        if !call.changes.iter().all(|listed| lease.covers(listed)) {
            return Err(Errno::EINVAL.to_uae());
        }
        let mut lists = lease.lists.lock().await;
        if !lease.holds() {
            return self.reply_again_to(context, &served, &call).await;
        }
        lease.touch(self.clients.now());
        let changes = call.changes.iter().map(|listed| &listed.change);
        let dirs: Vec<Fid> = changes.filter_map(directory_of).collect();
        let (reply, grown) = self.make_list(context, &served, call, Some(&lease)).await?;
        if reply.code == AbortCode::OK && !lease.is_wanted() {
            // As single calls: the next lease of a directory, also of one that was made under this one, is earned by them.
            dirs.into_iter().for_each(|dir| self.leases().note_change(dir, context.host.id()));
        }
        if let Some(space) = &mut lists.space {
            space.use_up(grown.saturating_mul(1024));
        }
        drop(before);
        Ok(reply)
    }

    /// Makes a list, unless it was made before. Returns the reply, and by how many blocks the volume has grown.
    async fn make_list(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        served: &Served,
        call: fs::ChangeList,
        lease: Option<&Arc<Lease>>,
    ) -> Result<(fs::ChangeListReply, u64), AbortCode> {
        let (list, tried) = (numbered(context, &call), self.tried(&call.changes));
        let mut ready = Vec::with_capacity(call.changes.len());
        for ListedChange { object, time, change } in call.changes.iter().cloned() {
            ready.push((object, time, self.ready(context, served, change).await));
        }
        let mut admitted = Admitted { lease: lease.cloned(), already: false };
        let subject = context.subject.clone();
        let made = self.change_in_order(served, Some(context.host.id()), list, ready, move |tx, listed| {
            admitted.check()?;
            make(tx, &subject, listed)
        });
        let made = match made.await {
            Err(VolumeError::MadeBefore) => {
                return self.reply_again_to(context, served, &call).await.map(|reply| (reply, 0));
            }
            made => made.map_err(|error| self.code(Fid::root(call.volume), &error))?,
        };
        let is_of_the_volume = made.failed.as_ref().is_some_and(VolumeError::is_of_the_volume);
        let failed = made.failed.map(|error| self.code(Fid::root(call.volume), &error));
        match failed {
            Some(code) if made.done.is_empty() && is_of_the_volume => return Err(code),
            // As the single call. Under a lease the list succeeds with the code: an abort would say that the lease has ended.
            Some(code) if made.done.is_empty() && lease.is_none() => {
                self.note_changes(context, tried, 0, failed);
                return Err(code);
            }
            _ => {}
        }
        let (done, grown): (Vec<_>, Vec<u64>) = made.done.into_iter().unzip();
        let reply = self.list_reply(context, served, tried, (done, failed), lease.map(Arc::as_ref)).await;
        Ok((reply, grown.iter().sum()))
    }

    /// The changes of a list for the audit log, if there is one.
    fn tried(&self, changes: &[ListedChange]) -> Tried {
        let changes = changes.iter().map(|listed| audited(&listed.change));
        if self.guard.records() { changes.collect() } else { Vec::new() }
    }

    /// Records the changes of a list, breaks the promises, and replies.
    async fn list_reply(
        self: &Arc<Self>,
        context: &CallContext,
        served: &Served,
        tried: Tried,
        (done, failed): (Vec<Done>, Option<AbortCode>),
        lease: Option<&Lease>,
    ) -> fs::ChangeListReply {
        self.note_changes(context, tried, done.len(), failed);
        let mut broken = Broken::default();
        // Breaks all promises first, so that their messages travel together.
        done.iter().for_each(|done| self.breaks_of_done(done, &mut broken));
        // The holder of a lease decides how many names a file has that was made under it.
        broken.caller_knows(|fid| !fid.is_directory() && lease.is_some_and(|lease| lease.has_lent(*fid)));
        self.break_promises(context, &mut broken).answered().await;
        let (header, mut replies) = (served.volume.header(), ChangeReplies::new());
        for done in done {
            // There are as many as changes in the call.
            let _ = replies.push(self.reply_of(context, &header, done).await);
        }
        fs::ChangeListReply { done: replies, code: failed.map_or(AbortCode::OK, |code| context.code(code)) }
    }

    /// Records each change that was made, and the one that failed, as the single calls are recorded.
    fn note_changes(&self, context: &CallContext, tried: Tried, made: usize, failed: Option<AbortCode>) {
        let count = made + usize::from(failed.is_some());
        for (at, change) in tried.into_iter().take(count).enumerate() {
            let code = failed.filter(|_| at == made).map_or(AbortCode::OK, |code| context.code(code));
            self.guard.note_change((&context.identity, context.peer), change, code);
        }
    }
}

/// Whether a list is made still: all of it is in one transaction, so that a lease that ends is followed by one of its own.
struct Admitted {
    lease: Option<Arc<Lease>>,
    already: bool,
}

impl Admitted {
    fn check(&mut self) -> Result<(), VolumeError> {
        self.already = self.already || self.lease.as_ref().is_none_or(|lease| lease.holds());
        if self.already { Ok(()) } else { Err(VolumeError::Refused(Errno::ESTALE.to_uae())) }
    }
}

/// Makes one change of a list.
fn make(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    (object, time, ready): (Fid, FileTime, Ready),
) -> Result<Grown, VolumeError> {
    if object != Fid::default() {
        tx.number_next(object);
    }
    if time != FileTime::default() {
        tx.made_at(time);
    }
    let before = tx.header().blocks_used;
    let done = ready.make(tx, subject).map_err(already_used)?;
    Ok((done, tx.header().blocks_used.saturating_sub(before)))
}

/// A list, as its series knows it.
pub(super) fn numbered(context: &CallContext, call: &fs::ChangeList) -> NumberedList {
    NumberedList {
        series: call.series,
        number: call.number,
        sum: crc32c::crc32c(&call.changes.to_bytes()),
        sender: sender(context),
    }
}

/// Who sends the lists of a series: the machine by the name that it gives itself, which is the same after a restart of the server.
pub(super) fn sender(context: &CallContext) -> Sender {
    let machine = match context.host.identity() {
        HostIdentity::Uuid(uuid) => Holder::Uuid(uuid),
        HostIdentity::Unknown | HostIdentity::Nameless => context.host.holder(),
    };
    Sender { holder: machine.to_bytes().into(), user: context.subject.id() }
}

/// The directory whose names a change under a lease changes.
fn directory_of(change: &Change) -> Option<Fid> {
    match change {
        Change::Store(_) | Change::StoreStatus(_) => None,
        named => named.fids().first().copied(),
    }
}

/// A lent number that is used twice is the client's fault, and does not say that the lease has ended.
fn already_used(error: VolumeError) -> VolumeError {
    match error {
        VolumeError::NotLent => VolumeError::Invalid,
        other => other,
    }
}

/// The name and the object of a change, as of the single call.
fn audited(change: &Change) -> (&'static str, AuditObject) {
    fn entry<R: Request>(dir: Fid, name: &[u8]) -> (&'static str, AuditObject) {
        (R::NAME, AuditObject::Entry(dir, AuditName::new(name)))
    }
    match change {
        Change::CreateFile(change) => entry::<fs::CreateFile>(change.create.dir, &change.create.name),
        Change::MakeDir(change) => entry::<fs::MakeDir>(change.dir, &change.name),
        Change::Symlink(change) => entry::<fs::Symlink>(change.dir, &change.name),
        Change::Link(change) => entry::<fs::Link>(change.dir, &change.name),
        Change::RemoveFile(change) => entry::<fs::RemoveFile>(change.dir, &change.name),
        Change::RemoveDir(change) => entry::<fs::RemoveDir>(change.dir, &change.name),
        Change::Store(change) => (fs::StoreData64::NAME, AuditObject::Fid(change.fid)),
        Change::StoreStatus(change) => (fs::StoreStatus::NAME, AuditObject::Fid(change.fid)),
        Change::Rename(change) => {
            let old = (change.old_dir, AuditName::new(&change.old_name));
            let new = (change.new_dir, AuditName::new(&change.new_name));
            (fs::Rename::NAME, AuditObject::Moved([old, new]))
        }
    }
}
