//! ChangeList, a call of our own: changes of one volume in one transaction, in order, until one fails
//! (docs/protocol extensions.md "ChangeList").

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::VolumeHeader;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, Change, ChangeReplies};
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;

use super::broken::Broken;
use super::change::{Done, Ready};
use super::server::{CallContext, FileServer};
use crate::audit::{AuditName, AuditObject};
use crate::leases::Lease;
use crate::volume_states::Served;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::ChangeList| async move {
        server.change_list(&context, call).await
    })
}

/// Changes of a list, as the single calls are recorded.
pub(super) type Tried = Vec<(&'static str, AuditObject)>;

impl FileServer {
    async fn change_list(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::ChangeList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        let fs::ChangeList { volume, changes } = call;
        if changes.is_empty() {
            return Err(Errno::EINVAL.to_uae());
        }
        if changes.iter().flat_map(Change::fids).any(|fid| fid.volume != volume) {
            return Err(Errno::EXDEV.to_uae());
        }
        let fids: Vec<Fid> = changes.iter().flat_map(Change::fids).collect();
        let (served, _) = self.unlent_volume(context, &fids, true).await?;
        let tried = self.tried(&changes);
        let mut ready = Vec::with_capacity(changes.len());
        for change in changes {
            ready.push(self.ready(context, &served, change).await);
        }
        let subject = context.subject.clone();
        let holder = Some(context.host.id());
        let made = self
            .change_in_order(&served, holder, ready, move |tx, ready: Ready| ready.make(tx, &subject))
            .await?;
        let failed = made.failed.map(|error| self.code(Fid::root(volume), &error));
        match failed {
            // As the single call.
            Some(code) if made.done.is_empty() => {
                self.note_changes(context, tried, 0, failed);
                Err(code)
            }
            _ => Ok(self.list_reply(context, &served, tried, (made.done, failed), None).await),
        }
    }

    /// The changes of a list for the audit log, if there is one.
    pub(super) fn tried(&self, changes: &[Change]) -> Tried {
        if self.guard.records() { changes.iter().map(audited).collect() } else { Vec::new() }
    }

    /// Records the changes of a list, breaks the promises, and replies.
    pub(super) async fn list_reply(
        self: &Arc<Self>,
        context: &CallContext,
        served: &Served,
        tried: Tried,
        (done, failed): (Vec<Done>, Option<AbortCode>),
        lease: Option<&Lease>,
    ) -> fs::ChangeListReply {
        self.note_changes(context, tried, done.len(), failed);
        let done = self.replies_of(context, served.volume.header(), done, lease).await;
        let code = failed.map_or(AbortCode::OK, |code| context.code(code));
        fs::ChangeListReply { done, code }
    }

    /// Breaks all promises first, so that their messages travel together.
    async fn replies_of(
        self: &Arc<Self>,
        context: &CallContext,
        header: Arc<VolumeHeader>,
        done: Vec<Done>,
        lease: Option<&Lease>,
    ) -> ChangeReplies {
        let mut broken = Broken::default();
        done.iter().for_each(|done| self.breaks_of_done(done, &mut broken));
        // The holder of a lease decides how many names a file has that was made under it.
        broken.caller_knows(|fid| !fid.is_directory() && lease.is_some_and(|lease| lease.has_lent(*fid)));
        self.break_promises(context, &mut broken).answered().await;
        let mut replies = ChangeReplies::new();
        for done in done {
            // There are as many as changes in the call.
            let _ = replies.push(self.reply_of(context, &header, done).await);
        }
        replies
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
