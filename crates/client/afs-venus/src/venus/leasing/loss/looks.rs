//! Copies of directories as the server has them, with promises of their own, if it gives them: of which object a name is, before it is changed after a loss.
//!
//! The copies in the cache show what programs were told, and are not used for this.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_rpc::Instant;
use afs_wire::dir::Blob;
use afs_wire::ids::{DataVersion, Fid, Uniquifier, VnodeId};

use crate::error::{ErrorKind, Result, VenusError};
use crate::location::Volume;
use crate::promise::Promise;
use crate::vnode::Vnode;

/// Copies that are kept: as many as a rename has directories.
const COPIES_MAX: usize = 2;

/// A directory as the server had it at some moment.
pub(super) struct Look {
    pub dir: Arc<Vnode>,
    pub version: DataVersion,
    /// `None` if the server promised nothing, as to a client that it has just lost sight of: then the version is asked for.
    pub promise: Option<Promise>,
    pub blob: Blob,
}

impl Look {
    /// The object of a name.
    ///
    /// # Errors
    /// The directory is damaged.
    pub fn find(&self, name: &[u8]) -> Result<Option<Fid>> {
        let fid = self.dir.key.fid;
        let found = self.blob.lookup(name);
        let found = found.map_err(|_| VenusError::new(ErrorKind::Protocol, "lookup").of(fid))?;
        Ok(found.map(|(vnode, unique)| Fid { vnode, unique, ..fid }))
    }

    /// Whether others have surely not changed the directory since.
    pub fn is_promised(&self, volume: &Volume, now: Instant) -> bool {
        let broken = self.dir.state().broken.max(volume.broken.load(Ordering::SeqCst));
        self.promise.as_ref().is_some_and(|promise| promise.is_valid(now, broken))
    }
}

/// The copies of the directories that were looked at last.
#[derive(Default)]
pub(super) struct Looks(Vec<Look>);

impl Looks {
    /// The copy of a directory.
    pub fn of(&self, dir: Fid) -> Option<&Look> {
        self.0.iter().find(|look| look.dir.key.fid == dir)
    }

    /// Keeps a copy, in place of an older one.
    pub fn keep(&mut self, look: Look) {
        self.forget(look.dir.key.fid);
        if self.0.len() >= COPIES_MAX {
            self.0.remove(0);
        }
        self.0.push(look);
    }

    /// The directory may have been changed by this client, to whom servers break no promise for that.
    pub fn forget(&mut self, dir: Fid) {
        self.0.retain(|look| look.dir.key.fid != dir);
    }

    /// This client has changed the directory, which has that version now. The copy is dropped if others have changed it too.
    pub fn changed(&mut self, dir: Fid, version: DataVersion, edit: impl FnOnce(&mut Blob) -> bool) {
        let Some(look) = self.0.iter_mut().find(|look| look.dir.key.fid == dir) else { return };
        if look.version.next() == version && edit(&mut look.blob) {
            look.version = version;
        } else {
            self.forget(dir);
        }
    }
}

/// An object as a directory names it.
pub(super) fn target(fid: Fid) -> (VnodeId, Uniquifier) {
    (fid.vnode, fid.unique)
}
