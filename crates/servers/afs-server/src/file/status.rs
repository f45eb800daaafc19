//! FetchStatus and StoreStatus.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{VnodeRecord, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, SetStatus};
use afs_wire::ids::Fid;

use super::broken::Broken;
use super::closing_modes;
use super::object::{actor, check_within, sync};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::callbacks::Grant;
use crate::subject::Subject;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::FetchStatus| async move {
        server.statistics.count_fetch();
        server.fetch_status(&context, call.fid, Grant::Single).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::StoreStatus| async move {
        server.statistics.count_store();
        server.store_status(&context, call).await
    })
}

impl FileServer {
    pub(super) async fn fetch_status(
        &self,
        context: &CallContext,
        fid: Fid,
        grant: Grant,
    ) -> Result<fs::FetchStatusReply, AbortCode> {
        let found = self.find(context, fid).await?;
        found.check(&context.subject, Operation::FetchStatus)?;
        if self.locks.count(fid, self.clients.now()) != 0 {
            // The status says whether the object is locked.
            self.recall_kept_lock(context, &found).await?;
        }
        let callback = self.promise(context, fid, &found.header, grant).await;
        // Read again: a change since the first read found no promise of this caller to break.
        let found = self.found(found.served, found.header, fid).await?;
        let status = self.status_of(&context.subject, &found, &found.record);
        Ok(fs::FetchStatusReply { status, callback, sync: sync(&found.header) })
    }

    async fn store_status(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::StoreStatus,
    ) -> Result<fs::StatusReply, AbortCode> {
        let fs::StoreStatus { fid, status: set } = call;
        let found = self.find_to_change(context, fid).await?;
        let subject = context.subject.clone();
        let holder = Some(context.host.id());
        let change = self.change(&found.served, holder, fid, move |tx| store_status(tx, &subject, fid, &set));
        let changed = change.await?;
        let mut broken = Broken::default();
        self.change_breaks(fid, &set, &mut broken);
        self.break_promises(context, &mut broken).answered().await;
        Ok(self.status_reply(context, &found.served.volume.header(), &changed))
    }

    /// An object whose data or status the caller has changed.
    pub(super) fn change_breaks(&self, fid: Fid, set: &SetStatus, broken: &mut Broken) {
        if changes_rights(set) {
            broken.and_told(self.data_path.file_changed(fid));
            broken.for_pasts(fid.volume);
        }
        if fid.is_directory() && closing_modes::asks_to_close(set) {
            // Its list may be another one. The caller's machine has other users.
            broken.and_told(self.data_path.access_list_changed(fid));
            return broken.for_everybody(fid);
        }
        broken.for_others(fid);
    }

    pub(super) fn status_reply(
        &self,
        context: &CallContext,
        header: &VolumeHeader,
        (record, acl): &ChangedBy,
    ) -> fs::StatusReply {
        fs::StatusReply { status: self.status(&context.subject, header, record, acl), sync: sync(header) }
    }
}

/// An object that was changed, with its access list.
pub(super) type ChangedBy = (VnodeRecord, Arc<Acl>);

pub(super) fn store_status(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    fid: Fid,
    set: &SetStatus,
) -> Result<ChangedBy, VolumeError> {
    let record = tx.vnode(fid)?;
    let acl = check_within(tx, &record, subject, Operation::StoreStatus(set))?;
    let record = tx.set_status(fid, set, actor(subject))?;
    match closing_modes::close(tx, subject, fid, &record, set)? {
        Some(closed) => Ok((closed.clone(), closed.acl.unwrap_or_default())),
        None => Ok((record, acl)),
    }
}

/// Whether a change of status may change who may read and write the file.
fn changes_rights(set: &SetStatus) -> bool {
    set.mode.is_some() || set.owner.is_some()
}
