//! The reply to a list that was made before: what became of it, from the row of its series, with the statuses of the present.

use std::sync::Arc;

use afs_volume::LastList;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CallBack, Change, ChangeReplies, ChangeReply, Status, VolSync};
use afs_wire::ids::Fid;

use super::change_list::numbered;
use super::object::sync;
use super::server::FileServer;
use crate::call_context::CallContext;
use crate::volume_states::Served;

impl FileServer {
    /// Replies to the last list of a series, if this is that. Promises are not made: the caller asks again of what it needs.
    ///
    /// # Errors
    /// ESTALE: it is another one, so that it was not made.
    pub(super) async fn reply_again_to(
        self: &Arc<Self>,
        context: &CallContext,
        served: &Served,
        call: &fs::ChangeList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        let (list, failed) = (numbered(context, call), |error| self.code(Fid::root(call.volume), &error));
        // What was written before is visible after this.
        served.volume.update(|_| Ok(())).await.map_err(failed)?;
        let series = call.series;
        let last = self.read(&served.volume, move |volume| volume.last_list(series)).await.map_err(failed)?;
        let last = last.filter(|last| last.is_of(&list)).ok_or(Errno::ESTALE.to_uae())?;
        let mut done = ChangeReplies::new();
        for (at, listed) in call.changes.iter().enumerate().take(last.made.len()) {
            let object = last.object(at, call.volume).unwrap_or_default();
            // There are as many as changes in the call.
            let _ = done.push(self.reply_now(context, served, &listed.change, object).await);
        }
        Ok(fs::ChangeListReply { done, code: code_of(context, &last) })
    }

    /// The reply to a change that was made, which made `object` if it makes one.
    async fn reply_now(
        self: &Arc<Self>,
        context: &CallContext,
        served: &Served,
        change: &Change,
        object: Fid,
    ) -> ChangeReply {
        let [first, second] = change.fids();
        let of = |fid| self.status_now(context, served, fid);
        let sync = sync(&served.volume.header());
        match change {
            Change::CreateFile(_) => {
                ChangeReply::CreateFile(made(object, of(object).await, of(first).await, sync))
            }
            Change::MakeDir(_) => ChangeReply::MakeDir(made(object, of(object).await, of(first).await, sync)),
            Change::Symlink(_) => ChangeReply::Symlink(fs::SymlinkReply {
                fid: object,
                status: of(object).await,
                dir_status: of(first).await,
                sync,
            }),
            Change::Link(_) => ChangeReply::Link(fs::LinkReply {
                status: of(second).await,
                dir_status: of(first).await,
                sync,
            }),
            Change::Store(_) => ChangeReply::Store(fs::StatusReply { status: of(first).await, sync }),
            Change::StoreStatus(_) => {
                ChangeReply::StoreStatus(fs::StatusReply { status: of(first).await, sync })
            }
            Change::RemoveFile(_) => {
                ChangeReply::RemoveFile(fs::RemoveReply { dir_status: of(first).await, sync })
            }
            Change::RemoveDir(_) => {
                ChangeReply::RemoveDir(fs::RemoveReply { dir_status: of(first).await, sync })
            }
            Change::Rename(_) => ChangeReply::Rename(fs::RenameReply {
                old_dir_status: of(first).await,
                new_dir_status: of(second).await,
                sync,
            }),
        }
    }

    /// The status of an object for a caller who has changed it; a failed one if it is gone.
    async fn status_now(&self, context: &CallContext, served: &Served, fid: Fid) -> Status {
        match self.found(served.clone(), served.volume.header(), fid).await {
            Ok(found) => self.status_of(&context.subject, &found, &found.record),
            Err(code) => Status::failed(context.code(code)),
        }
    }
}

fn made(fid: Fid, status: Status, dir_status: Status, sync: VolSync) -> fs::CreateReply {
    fs::CreateReply { fid, status, dir_status, callback: CallBack::NONE, sync }
}

/// Why a change of the list was not made.
fn code_of(context: &CallContext, last: &LastList) -> AbortCode {
    if last.code == AbortCode::OK { last.code } else { context.code(last.code) }
}
