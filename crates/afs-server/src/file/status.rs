//! FetchStatus and StoreStatus.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, SetStatus};
use afs_wire::ids::Fid;

use super::object::{actor, check_within, sync};
use super::server::{CallContext, FileServer};
use crate::access::Operation;
use crate::callbacks::Grant;

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
        let callback = self.promise(context, fid, &found.header, grant).await;
        // Read again: a change since the first read found no promise of this caller to break.
        let found = self.found(found.served, found.header, fid).await?;
        let status = self.status(&context.subject, &found.header, &found.record, &found.acl);
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
        let change = self.change(&found.served, fid, move |tx| {
            let record = tx.vnode(fid)?;
            let acl = check_within(tx, &record, &subject, Operation::StoreStatus(&set))?;
            let record = tx.set_status(fid, &set, actor(&subject))?;
            Ok((record, acl))
        });
        let (record, acl) = change.await?;
        if changes_rights(&set) {
            self.data_path.file_changed(fid);
        }
        self.clients.start_breaks(fid, Some(context.host.id())).answered().await;
        let header = found.served.volume.header();
        let status = self.status(&context.subject, &header, &record, &acl);
        Ok(fs::StatusReply { status, sync: sync(&header) })
    }
}

/// Whether a change of status may change who may read and write the file.
pub(super) fn changes_rights(set: &SetStatus) -> bool {
    set.mode.is_some() || set.owner.is_some()
}
