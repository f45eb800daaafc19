//! Removal of what is cached, by order of a user: of an object, of a volume, of everything.

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::NodeTarget;
use crate::venus::Venus;

impl Venus {
    /// Removes what is known of the names and places of volumes and of the addresses of servers, in the kernel too.
    fn forget_locations(&self) {
        self.location.volumes().forget_groups();
        self.location.servers().doubt_addresses();
        for volume in self.location.volumes().all() {
            volume.doubt_location();
            self.promises.invalidate_mount_points(&volume);
        }
    }

    /// Removes what is cached, except dirty data and that of open files. A file that was just closed is waited for.
    pub(super) async fn flush_cached(&self, node_target: NodeTarget, what: &[u8]) -> Result<()> {
        let vnodes = match (what.strip_suffix(b"\0").unwrap_or(what), node_target) {
            (b"" | b"file" | b"1", NodeTarget::Object(key)) => {
                let vnode = self.vnode(key);
                self.await_release(&vnode).await;
                vec![vnode]
            }
            (b"volume", NodeTarget::Object(key)) => self.vnodes.of_volume(key.cell, key.fid.volume),
            (b"all", _) => self.vnodes.all(),
            (b"locations", _) => {
                self.forget_locations();
                return Ok(());
            }
            // Nothing is cached of a directory of this mount.
            (b"" | b"file" | b"1" | b"volume", _) => return Ok(()),
            _ => return Err(VenusError::new(ErrorKind::Invalid, "flush")),
        };
        for vnode in vnodes {
            self.distrust(&vnode);
            {
                let mut state = vnode.state();
                state.directory = None;
                state.link = None;
                state.file.forget_pages();
                state.listing.forget();
            }
            if vnode.state().file.data().is_none() {
                self.files.forget_kept_on_disk(vnode.key).await?;
            }
            self.invalidate(vnode.key);
        }
        self.location.volumes().forget_groups();
        Ok(())
    }
}
