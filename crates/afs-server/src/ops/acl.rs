//! FetchACL and StoreACL (docs/protocol fileserver.md "5.3 ACL text form").

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::acl::{NamedAcl, Names};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::{Fid, ViceId};

use super::object::{check_within, sync};
use crate::access::Wish;
use crate::server::{FileServer, Visit};
use crate::subject::NameService;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::FetchAcl| async move {
        server.fetch_acl(&visit, call.fid)
    });
    let table = super::call(table, |server: Arc<FileServer>, visit, call: fs::StoreAcl| async move {
        server.store_acl(&visit, call.fid, &call.acl).await
    });
    super::call(table, |server: Arc<FileServer>, visit, call: fs::OldStoreAcl| async move {
        server.store_acl(&visit, call.fid, &call.acl).await
    })
}

impl FileServer {
    /// On a file or link this is the list of its directory, with the status of the object itself.
    fn fetch_acl(&self, visit: &Visit, fid: Fid) -> Result<fs::FetchAclReply, AbortCode> {
        let found = self.find(fid)?;
        found.check(&visit.subject, Wish::FetchAcl)?;
        let named = found.acl.named(&Known(&*self.names));
        let acl = named.to_opaque().map_err(|_| Errno::E2BIG.to_uae())?;
        let status = self.status(&visit.subject, &found.header, &found.record, &found.acl);
        Ok(fs::FetchAclReply { acl, status, sync: sync(&found.header) })
    }

    async fn store_acl(
        self: &Arc<Self>,
        visit: &Arc<Visit>,
        fid: Fid,
        text: &[u8],
    ) -> Result<fs::StatusReply, AbortCode> {
        let found = self.find_to_change(fid)?;
        found.check(&visit.subject, Wish::StoreAcl)?;
        let acl = NamedAcl::from_opaque(text).and_then(|named| named.resolve(&Known(&*self.names)));
        let acl = acl.map_err(|_| Errno::EINVAL.to_uae())?;
        let subject = visit.subject.clone();
        let change = self.change(&found.volume, fid, move |tx| {
            let record = tx.vnode(fid)?;
            check_within(tx, &record, &subject, Wish::StoreAcl)?;
            tx.set_acl(fid, acl)
        });
        let record = change.await?;
        self.clients.start_breaks(fid, Some(visit.host.id())).answered().await;
        let header = found.volume.header();
        let acl = record.acl.clone().unwrap_or_default();
        let status = self.status(&visit.subject, &header, &record, &acl);
        Ok(fs::StatusReply { status, sync: sync(&header) })
    }
}

/// The name service where a plain type is needed.
struct Known<'a>(&'a dyn NameService);

impl Names for Known<'_> {
    fn name_of(&self, id: ViceId) -> Option<String> {
        self.0.name_of(id)
    }

    fn id_of(&self, name: &str) -> Option<ViceId> {
        self.0.id_of(name)
    }
}
