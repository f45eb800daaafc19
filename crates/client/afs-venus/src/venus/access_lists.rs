//! Access lists of directories, read and set as text.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, AclText};
use bytes::Bytes;

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;

impl Venus {
    pub(super) async fn acl(&self, key: Key, volume: &Arc<Volume>) -> Result<Bytes> {
        let reply =
            self.call(volume, fs::FetchAcl { fid: key.fid }).await.map_err(|error| error.of(key.fid))?.value;
        let text = reply.acl.as_bytes();
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        Ok(Bytes::copy_from_slice(text.get(..end).unwrap_or(text)))
    }

    /// Servers require a NUL at the end. The rights on all objects in the directory follow from its list.
    pub(super) async fn set_acl(&self, key: Key, value: &[u8]) -> Result<()> {
        let mut text = value.to_vec();
        if text.last() != Some(&0) {
            text.push(0);
        }
        let acl = AclText::new(text).map_err(|_| VenusError::new(ErrorKind::Refused(7), "StoreACL"))?;
        let vnode = self.vnode(key);
        let volume = self.volume_of(key).await?;
        if let Some(lease) = self.leases.known(key) {
            // The rights of what is made under it will be others.
            self.end_lease(&lease).await;
        }
        let sites = volume.sites(self.now());
        let old = sites.iter().any(|server| server.old_store_acl.load(Ordering::Relaxed));
        let stored = match old {
            true => Err(None),
            false => self.call(&volume, fs::StoreAcl { fid: key.fid, acl: acl.clone() }).await.map_err(Some),
        };
        let answered = match stored {
            Ok(answered) => answered,
            Err(Some(error)) if error.code != Some(AbortCode::RXGEN_OPCODE) => return Err(error.of(key.fid)),
            Err(_) => {
                sites.iter().for_each(|server| server.old_store_acl.store(true, Ordering::Relaxed));
                self.call(&volume, fs::OldStoreAcl { fid: key.fid, acl })
                    .await
                    .map_err(|error| error.of(key.fid))?
            }
        };
        self.promises.record_change(
            &volume,
            &vnode,
            &answered.change(&answered.value.status, &answered.value.sync),
        );
        self.distrust_volume_access(key);
        Ok(())
    }

    /// Ends the promises on a directory and its children after a change of its access list: statuses include the
    /// caller's rights.
    fn distrust_volume_access(&self, dir: Key) {
        for vnode in self.vnodes.of_volume(dir.cell, dir.fid.volume) {
            let is_child = vnode.key == dir
                || vnode.state().status.is_some_and(|status| {
                    !vnode.key.fid.is_directory()
                        && (status.parent, status.parent_unique) == (dir.fid.vnode, dir.fid.unique)
                });
            if is_child {
                self.distrust(&vnode);
                self.invalidate(vnode.key);
            }
        }
    }
}
