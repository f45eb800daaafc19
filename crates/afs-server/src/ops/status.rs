//! FetchStatus and StoreStatus.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::Fid;

use super::object::{actor, check_within, sync};
use crate::access::Wish;
use crate::callbacks::Grant;
use crate::server::{FileServer, Visit};

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::FetchStatus| async move {
        server.statistics.count_fetch();
        server.fetch_status(&visit, call.fid, Grant::Single).await
    });
    super::call(table, |server: Arc<FileServer>, visit, call: fs::StoreStatus| async move {
        server.statistics.count_store();
        server.store_status(&visit, call).await
    })
}

impl FileServer {
    pub(super) async fn fetch_status(
        &self,
        visit: &Visit,
        fid: Fid,
        grant: Grant,
    ) -> Result<fs::FetchStatusReply, AbortCode> {
        let found = self.find(visit, fid).await?;
        found.check(&visit.subject, Wish::FetchStatus)?;
        let callback = self.promise(visit, fid, &found.header, grant).await;
        // Read again: a change since the first read found no promise of this caller to break.
        let found = self.found(found.served, found.header, fid).await?;
        let status = self.status(&visit.subject, &found.header, &found.record, &found.acl);
        Ok(fs::FetchStatusReply { status, callback, sync: sync(&found.header) })
    }

    async fn store_status(
        self: &Arc<Self>,
        visit: &Arc<Visit>,
        call: fs::StoreStatus,
    ) -> Result<fs::StatusReply, AbortCode> {
        let fs::StoreStatus { fid, status: set } = call;
        let found = self.find_to_change(visit, fid).await?;
        let subject = visit.subject.clone();
        let change = self.change(&found.served, fid, move |tx| {
            let record = tx.vnode(fid)?;
            let acl = check_within(tx, &record, &subject, Wish::StoreStatus(&set))?;
            let record = tx.set_status(fid, &set, actor(&subject))?;
            Ok((record, acl))
        });
        let (record, acl) = change.await?;
        self.clients.start_breaks(fid, Some(visit.host.id())).answered().await;
        let header = found.served.volume.header();
        let status = self.status(&visit.subject, &header, &record, &acl);
        Ok(fs::StatusReply { status, sync: sync(&header) })
    }
}
