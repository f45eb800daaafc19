//! Rename.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::Rename;
use afs_wire::error::AbortCode;
use afs_wire::fs;

use super::object::{actor, check_within, directory_within, sync};
use super::server::{CallContext, FileServer};
use crate::access::Operation;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::Rename| async move {
        server.rename(&context, call).await
    })
}

impl FileServer {
    async fn rename(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::Rename,
    ) -> Result<fs::RenameReply, AbortCode> {
        let (old_dir, new_dir) = (call.old_dir, call.new_dir);
        let (served, _) = self.volume(context, old_dir, true)?;
        let subject = context.subject.clone();
        let change = self.change(&served, old_dir, move |tx| {
            let rename = Rename {
                old_directory: call.old_dir,
                old_name: &call.old_name,
                new_directory: call.new_dir,
                new_name: &call.new_name,
            };
            rename.check()?;
            let new = tx.directory(call.new_dir)?;
            let old_acl = directory_within(tx, call.old_dir, &subject, Operation::Delete)?;
            let new_acl = check_within(tx, &new, &subject, Operation::Insert)?;
            let may_replace = check_within(tx, &new, &subject, Operation::Delete).is_ok();
            Ok((tx.rename(rename, may_replace, actor(&subject))?, old_acl, new_acl))
        });
        let (renamed, old_acl, new_acl) = change.await?;
        let caller = Some(context.host.id());
        let mut breaks = self.clients.start_breaks(old_dir, caller);
        if new_dir != old_dir {
            // Another access list decides from now on.
            self.data_path.file_changed(renamed.object.fid(old_dir.volume));
            breaks = breaks.and(self.clients.start_breaks(new_dir, caller));
        }
        if renamed.moved_directory {
            breaks = breaks.and(self.clients.start_breaks(renamed.object.fid(old_dir.volume), None));
        }
        if let Some(replaced) = &renamed.replaced {
            breaks = breaks.and(self.unlinked(old_dir.volume, replaced));
        }
        breaks.answered().await;
        let header = served.volume.header();
        Ok(fs::RenameReply {
            old_dir_status: self.status(&context.subject, &header, &renamed.old_directory, &old_acl),
            new_dir_status: self.status(&context.subject, &header, &renamed.new_directory, &new_acl),
            sync: sync(&header),
        })
    }
}
