//! Replies to lists of changes that were decided under a lease: what was made, and what is known of the objects then.

use std::collections::BTreeMap;
use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{CallBack, ChangeListReply, ChangeReply, Status};

use super::whole_stores::name_of_decided;
use crate::calls::CallReply;
use crate::leases::{Entry, Lease, List};
use crate::venus::Venus;
use crate::venus::listed::name_of_reply;
use crate::vnode::Vnode;

impl Venus {
    pub(super) fn list_answered(
        &self,
        lease: &Arc<Lease>,
        list: &List,
        answered: &CallReply<ChangeListReply>,
    ) {
        let replies = answered.value.done.iter().zip(&list.entries);
        let made: Vec<_> = replies.take_while(|(reply, entry)| fits(entry, reply)).collect();
        // While the list counts as sent, no call is made about its objects.
        self.record_made(lease, list, &made, answered);
        if made.len() < list.entries.len() || answered.value.code != AbortCode::OK {
            let (code, made) = (answered.value.code, made.len());
            tracing::warn!(dir = %lease.dir.fid, %code, made, "a change that was decided under a lease was not made");
            // A number is used if something was made.
            self.lost(lease, Some(made).filter(|_| !answered.value.done.is_empty()));
        } else {
            lease.journal(|journal| journal.list_is_over(made.len()));
        }
    }

    /// Records of each object the status after its last change in the list. Of one with a later change that status is not the one
    /// that was decided: what was decided stays.
    fn record_made(
        &self,
        lease: &Lease,
        list: &List,
        made: &[(&ChangeReply, &Entry)],
        answered: &CallReply<ChangeListReply>,
    ) {
        let mut last = BTreeMap::new();
        let mut promised = BTreeMap::new();
        for (reply, entry) in made {
            let dirs = entry.dirs.iter().zip(dir_statuses(reply));
            last.extend(dirs.filter_map(|((dir, _), status)| Some((dir.key, (dir, *status?)))));
            if let Some((status, callback)) = object_status(reply) {
                last.insert(entry.vnode.key, (&entry.vnode, *status));
                promised.extend(callback.map(|callback| (entry.vnode.key, callback)));
            }
        }
        for (key, (vnode, status)) in last {
            if status.error != AbortCode::OK {
                // The list was made before, and others have removed the object since.
                lease.if_settled_by(list, made.len(), key, || self.forget_copy(vnode));
                continue;
            }
            let callback = promised.get(&key).copied();
            let recorded = lease.if_settled_by(list, made.len(), key, || {
                let status = if list.unlinks(key) { with_names_of(vnode, status) } else { status };
                self.record_last(lease, vnode, &status, callback, answered)
            });
            match recorded {
                Some(Recorded::OtherVersion) => {
                    tracing::debug!(dir = %key.fid, "a directory is of another version than was decided");
                    self.forget_copy(vnode);
                }
                // A link: nothing is promised of it any more.
                Some(Recorded::Unpromised) => self.invalidate(key),
                Some(Recorded::OtherStatus) => drop(self.kernel.invalidate_attributes(key)),
                Some(Recorded::AsDecided) | None => {}
            }
        }
    }

    fn record_last(
        &self,
        lease: &Lease,
        vnode: &Vnode,
        status: &Status,
        callback: Option<&CallBack>,
        answered: &CallReply<ChangeListReply>,
    ) -> Recorded {
        let before = {
            let mut state = vnode.state();
            let decided_at = std::mem::take(&mut state.decided_at);
            let shown =
                |status: Status| Status { server_mod_time: status.server_mod_time.max(decided_at), ..status };
            state.status.map(shown)
        };
        let is_directory = vnode.key.fid.is_directory();
        if is_directory && !self.promises.record_settled(vnode, status) {
            return Recorded::OtherVersion;
        }
        match callback {
            Some(callback) => {
                let (volume, sync) = (&lease.volume, &lease.sync);
                self.promises.record_reply(volume, vnode, status, callback, sync, &answered.origin());
            }
            None if is_directory => {}
            None => {
                self.record_settled_file(lease, vnode, status);
            }
        }
        match callback {
            Some(callback) if callback.expires_in == 0 => Recorded::Unpromised,
            _ if vnode.state().status != before => Recorded::OtherStatus,
            _ => Recorded::AsDecided,
        }
    }
}

/// What the kernel has to be told of an object of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recorded {
    AsDecided,
    OtherStatus,
    Unpromised,
    /// A directory whose copy is not what the server has.
    OtherVersion,
}

/// Whether it is a reply to that change.
fn fits(entry: &Entry, reply: &ChangeReply) -> bool {
    let made = match reply {
        ChangeReply::CreateFile(made) | ChangeReply::MakeDir(made) => Some(made.fid),
        ChangeReply::Symlink(made) => Some(made.fid),
        _ => None,
    };
    name_of_decided(&entry.decided) == name_of_reply(reply) && made.is_none_or(|fid| fid == entry.object)
}

/// The status of the object that was made, with its promise, or changed.
fn object_status(reply: &ChangeReply) -> Option<(&Status, Option<&CallBack>)> {
    match reply {
        ChangeReply::CreateFile(made) | ChangeReply::MakeDir(made) => {
            Some((&made.status, Some(&made.callback)))
        }
        ChangeReply::Symlink(made) => Some((&made.status, Some(&CallBack::NONE))),
        ChangeReply::Store(stored) | ChangeReply::StoreStatus(stored) => Some((&stored.status, None)),
        ChangeReply::Link(linked) => Some((&linked.status, None)),
        ChangeReply::RemoveFile(_) | ChangeReply::RemoveDir(_) | ChangeReply::Rename(_) => None,
    }
}

/// A status as of before a change that took a name from the object: the reply to that has none. Under the lease the number of names is the
/// one that was decided.
fn with_names_of(vnode: &Vnode, status: Status) -> Status {
    let decided = vnode.state().status;
    Status { link_count: decided.map_or(status.link_count, |decided| decided.link_count), ..status }
}

/// The statuses of the directories of a change of names after it.
fn dir_statuses(reply: &ChangeReply) -> [Option<&Status>; 2] {
    match reply {
        ChangeReply::CreateFile(made) | ChangeReply::MakeDir(made) => [Some(&made.dir_status), None],
        ChangeReply::Symlink(made) => [Some(&made.dir_status), None],
        ChangeReply::Link(linked) => [Some(&linked.dir_status), None],
        ChangeReply::RemoveFile(removed) | ChangeReply::RemoveDir(removed) => {
            [Some(&removed.dir_status), None]
        }
        ChangeReply::Rename(renamed) => [Some(&renamed.old_dir_status), Some(&renamed.new_dir_status)],
        ChangeReply::Store(_) | ChangeReply::StoreStatus(_) => [None, None],
    }
}
