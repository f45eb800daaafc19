//! Rename.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{Rename, Renamed, Replacing, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::Fid;

use super::broken::Broken;
use super::object::{actor, check_within, directory_within, sync};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::subject::Subject;

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    let table = super::call(table, |server: Arc<FileServer>, context, call: fs::Rename| async move {
        server.rename(&context, call, true).await
    });
    super::call(table, |server: Arc<FileServer>, context, call: fs::RenameNew| async move {
        let fs::RenameNew { old_dir, old_name, new_dir, new_name } = call;
        server.rename(&context, fs::Rename { old_dir, old_name, new_dir, new_name }, false).await
    })
}

/// A rename, with the access lists of the old and the new directory.
pub(super) struct RenamedBy {
    renamed: Renamed,
    acls: [Arc<Acl>; 2],
}

/// Renames. `replaces`: an object that has the new name already is replaced, if the caller may remove it.
pub(super) fn rename(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::Rename,
    replaces: bool,
) -> Result<RenamedBy, VolumeError> {
    let rename = Rename {
        old_directory: call.old_dir,
        old_name: &call.old_name,
        new_directory: call.new_dir,
        new_name: &call.new_name,
    };
    rename.check()?;
    let new = tx.directory(call.new_dir)?;
    let old_acl = directory_within(tx, call.old_dir, subject, Operation::Delete)?;
    let new_acl = check_within(tx, &new, subject, Operation::Insert)?;
    let replacing = match check_within(tx, &new, subject, Operation::Delete) {
        _ if !replaces => Replacing::Never,
        Ok(_) => Replacing::Allowed,
        Err(_) => Replacing::Denied,
    };
    Ok(RenamedBy { renamed: tx.rename(rename, replacing, actor(subject))?, acls: [old_acl, new_acl] })
}

impl FileServer {
    async fn rename(
        self: &Arc<Self>,
        context: &Arc<CallContext>,
        call: fs::Rename,
        replaces: bool,
    ) -> Result<fs::RenameReply, AbortCode> {
        let dirs = [call.old_dir, call.new_dir];
        let (served, _) = self.unlent_volume(context, &dirs, true).await?;
        let subject = context.subject.clone();
        let renamed = self
            .change_again(&served, context, dirs[0], move |tx| rename(tx, &subject, &call, replaces))
            .await?;
        dirs.iter().for_each(|dir| self.leases().note_change(*dir, context.host.id()));
        let mut broken = Broken::default();
        self.rename_breaks(dirs, &renamed, &mut broken);
        self.break_promises(context, &mut broken).answered().await;
        Ok(self.rename_reply(context, &served.volume.header(), &renamed))
    }

    /// Both directories, and what else was changed.
    pub(super) fn rename_breaks(
        &self,
        [old_dir, new_dir]: [Fid; 2],
        RenamedBy { renamed, .. }: &RenamedBy,
        broken: &mut Broken,
    ) {
        broken.for_others(old_dir);
        if new_dir != old_dir {
            // Another access list decides from now on.
            broken.and_told(self.data_path.file_changed(renamed.object.fid(old_dir.volume)));
            broken.for_others(new_dir);
        }
        if renamed.moved_directory {
            broken.for_everybody(renamed.object.fid(old_dir.volume));
        }
        if let Some(replaced) = &renamed.replaced {
            self.unlinked(old_dir.volume, replaced, broken);
        }
    }

    pub(super) fn rename_reply(
        &self,
        context: &CallContext,
        header: &VolumeHeader,
        RenamedBy { renamed, acls: [old_acl, new_acl] }: &RenamedBy,
    ) -> fs::RenameReply {
        fs::RenameReply {
            old_dir_status: self.status(&context.subject, header, &renamed.old_directory, old_acl),
            new_dir_status: self.status(&context.subject, header, &renamed.new_directory, new_acl),
            sync: sync(header),
        }
    }
}
