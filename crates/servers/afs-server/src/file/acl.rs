//! FetchACL and StoreACL (docs/protocol fileserver.md "5.3 ACL text form").

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::acl::{Acl, NamedAcl, NamedEntry, Names};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::{Fid, ViceId};

use super::object::{check_within, sync};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::subject::NameService;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::FetchAcl| async move {
        server.fetch_acl(&context, call.fid).await
    });
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::StoreAcl| async move {
        server.store_acl(&context, call.fid, &call.acl).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::OldStoreAcl| async move {
        server.store_acl(&context, call.fid, &call.acl).await
    })
}

impl FileServer {
    /// On a file or link this is the list of its directory, with the status of the object itself.
    async fn fetch_acl(&self, context: &CallContext, fid: Fid) -> Result<fs::FetchAclReply, AbortCode> {
        let found = self.find(context, fid).await?;
        found.check(&context.subject, Operation::FetchAcl)?;
        let named = found.acl.named(&Known::of_ids(self.guard.names(), &found.acl).await?);
        let acl = named.to_opaque().map_err(|_| Errno::E2BIG.to_uae())?;
        let status = self.status_of(&context.subject, &found, &found.record);
        Ok(fs::FetchAclReply { acl, status, sync: sync(&found.header) })
    }

    async fn store_acl(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        fid: Fid,
        text: &[u8],
    ) -> Result<fs::StatusReply, AbortCode> {
        let invalid = |_| Errno::EINVAL.to_uae();
        let named = NamedAcl::from_opaque(text).map_err(invalid)?;
        if let Some(found) = self.find_past(context, fid).await? {
            return self.store_past_acl(context, fid, found, &named).await;
        }
        let found = self.find_to_change(context, fid).await?;
        found.check(&context.subject, Operation::StoreAcl)?;
        // Also from the caller's machine: what its users were told was decided by the list as it is.
        self.recall_from_others(fid, None).await?;
        let known = Known::of_names_and(self.guard.names(), &named, &found.acl).await?;
        let acl = named.resolve(&known).map_err(invalid)?;
        let subject = context.subject.clone();
        let change = self.change(&found.served, None, fid, move |tx| {
            let record = tx.vnode(fid)?;
            check_within(tx, &record, &subject, Operation::StoreAcl)?;
            tx.set_acl(fid, acl)
        });
        let record = change.await?;
        let told = self.data_path.access_list_changed(fid);
        self.clients.break_pasts(fid.volume);
        self.clients.start_breaks(fid, Some(context.host.id())).and_told(told).answered().await;
        let header = found.served.volume.header();
        let acl = record.acl.clone().unwrap_or_default();
        let status = self.status(&context.subject, &header, &record, &acl);
        Ok(fs::StatusReply { status, sync: sync(&header) })
    }
}

/// The ids of the names of one access list, looked up in one request.
pub(super) struct Known(Vec<(String, ViceId)>);

impl Known {
    async fn of_ids(names: &dyn NameService, acl: &Acl) -> Result<Self, AbortCode> {
        let ids: Vec<ViceId> = acl.positive.iter().chain(&acl.negative).map(|entry| entry.0).collect();
        let found = names.names_of(&ids).await?;
        Ok(Known(found.into_iter().zip(ids).filter_map(|(name, id)| Some((name?, id))).collect()))
    }

    /// The ids of the names, and those that the present list has of deleted users and groups: they are shown as numbers, and who changes
    /// another entry writes them back.
    pub(super) async fn of_names_and(
        names: &dyn NameService,
        named: &NamedAcl,
        present: &Acl,
    ) -> Result<Self, AbortCode> {
        let mut known = Known::of_names(names, named).await?;
        let number = |entry: &NamedEntry| Some((entry.name.clone(), ViceId(entry.name.parse().ok()?)));
        let unknown = |entry: &&NamedEntry| known.id_of(&entry.name).is_none();
        let entries = named.positive.iter().chain(&named.negative).filter(unknown);
        let mut numbers: Vec<_> = entries.filter_map(number).collect();
        if !numbers.is_empty() {
            let with_names = Known::of_ids(names, present).await?;
            let is_present = |id| present.positive.iter().chain(&present.negative).any(|entry| entry.0 == id);
            numbers.retain(|(_, id)| is_present(*id) && with_names.name_of(*id).is_none());
            known.0.append(&mut numbers);
        }
        Ok(known)
    }

    async fn of_names(names: &dyn NameService, acl: &NamedAcl) -> Result<Self, AbortCode> {
        let entries = acl.positive.iter().chain(&acl.negative);
        let wanted: Vec<String> = entries.map(|entry| entry.name.clone()).collect();
        let found = names.ids_of(&wanted).await?;
        Ok(Known(wanted.into_iter().zip(found).filter_map(|(name, id)| Some((name, id?))).collect()))
    }
}

impl Names for Known {
    fn name_of(&self, id: ViceId) -> Option<String> {
        self.0.iter().find(|known| known.1 == id).map(|known| known.0.clone())
    }

    fn id_of(&self, name: &str) -> Option<ViceId> {
        self.0.iter().find(|known| known.0 == name).map(|known| known.1)
    }
}
