//! Contents of directories: fetched whole, looked up here, and patched after changes of our own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::dir::{self, Blob};
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{Fid, Rights};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::venus::status::Change;
use crate::vnode::{Directory, Vnode, is_mount_point};

/// Longest directory (docs/protocol/directory.md "1. Pages and slots").
const DIRECTORY_MAX: u64 = dir::PAGES_MAX as u64 * dir::PAGE_LEN as u64;
/// Whether rights show the names in a directory.
fn may_look(rights: Rights) -> bool {
    rights.contains(Rights::LOOKUP)
}

/// What a name stood for just before a change of ours at the server: told by our copy of the directory if it was of that version.
pub(super) type Before = Option<Option<Key>>;

/// How often a directory is fetched again because it changed while it came.
const FETCHES_MAX: u32 = 8;

impl Venus {
    /// Works on the contents of a directory, as of a moment at which they were promised (or just fetched), for one who
    /// may know them.
    pub(super) async fn with_directory<T>(
        &self,
        vnode: &Arc<Vnode>,
        work: impl FnOnce(&Blob) -> T,
    ) -> Result<T> {
        if vnode.state().status.as_ref().is_some_and(is_mount_point) {
            return Err(VenusError::new(ErrorKind::NoVolume, "mount point").of(vnode.key.fid));
        }
        let volume = self.volume_of(vnode.key).await?;
        let mut work = Some(work);
        for _ in 0..FETCHES_MAX {
            if self.known_rights(vnode, &volume, may_look).is_some_and(may_look)
                && let Some(done) = self.look(vnode, &mut work)
            {
                return done;
            }
            let _turn = vnode.fetching.lock().await;
            let has_contents = vnode.state().directory.is_some();
            let mut may = false;
            if has_contents {
                let told = self.status_fetched(vnode, &volume).await?;
                let rights = told.status.caller_access | told.status.anonymous_access;
                may = may_look(rights) || may_look(self.rights_in_turn(vnode, &volume, may_look).await?);
            }
            let matches = {
                let state = vnode.state();
                state.directory.as_ref().map(|directory| directory.version)
                    == state.status.map(|s| s.data_version)
                    && state.directory.is_some()
            };
            // It is the server that refuses: it lets the volume's owner look whatever the list says.
            if !matches || !may {
                self.fetch_directory(vnode, &volume).await?;
            }
            // Looked at now, even if the promise is broken already: it was true when the server answered.
            if vnode.fresh_status(&volume, self.now()).is_none() {
                self.answered_unpromised();
            }
            if let Some(done) = self.look(vnode, &mut work) {
                return done;
            }
        }
        Err(VenusError::new(ErrorKind::Protocol, "FetchData").of(vnode.key.fid))
    }

    fn look<T>(&self, vnode: &Vnode, work: &mut Option<impl FnOnce(&Blob) -> T>) -> Option<Result<T>> {
        let state = vnode.state();
        let status = state.status?;
        if status.kind != FileKind::Directory {
            return Some(Err(VenusError::new(ErrorKind::NotDirectory, "lookup").of(vnode.key.fid)));
        }
        let directory =
            state.directory.as_ref().filter(|directory| directory.version == status.data_version)?;
        work.take().map(|work| Ok(work(&directory.blob)))
    }

    /// Fetches contents and status in one call.
    async fn fetch_directory(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>) -> Result<()> {
        if !vnode.key.fid.is_directory() {
            return Err(VenusError::new(ErrorKind::NotDirectory, "lookup").of(vnode.key.fid));
        }
        let fetched = self.fetch_small(volume, vnode.key.fid, DIRECTORY_MAX).await;
        let answered = fetched.map_err(|error| self.noticed(vnode, error))?;
        let origin = answered.origin();
        let (bytes, reply) = &answered.value;
        if reply.status.length != bytes.len() as u64 {
            return Ok(());
        }
        let damaged = |what: &dyn std::fmt::Display| {
            tracing::warn!(fid = %vnode.key.fid, "a directory is damaged: {what}");
            VenusError::new(ErrorKind::Protocol, "FetchData").of(vnode.key.fid)
        };
        let mut blob = Blob::from_bytes(bytes.clone()).map_err(|error| damaged(&error))?;
        dir::check(&mut blob).map_err(|error| damaged(&error))?;
        self.take(volume, vnode, &reply.status, &reply.callback, &reply.sync, &origin);
        self.keep_directory(vnode, Directory { version: reply.status.data_version, blob });
        Ok(())
    }

    fn keep_directory(&self, vnode: &Vnode, directory: Directory) {
        let bytes = directory.blob.as_bytes().len() as u64;
        let old = vnode.state().directory.take();
        if let Some(old) = old {
            self.uncount(&old);
            self.look_for_removed(vnode.key, &old.blob, &directory.blob);
        }
        {
            let mut state = vnode.state();
            self.uncount_directory(&mut state);
            state.directory = Some(directory);
        }
        let total = self.directory_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if total > self.limits.directory_bytes_max {
            self.drop_directories(vnode.key);
        }
    }

    /// Drops contents of the directories not used longest until the bound is kept. Their status stays.
    fn drop_directories(&self, but: Key) {
        for vnode in self.vnodes.all() {
            if self.directory_bytes.load(Ordering::Relaxed) <= self.limits.directory_bytes_max {
                return;
            }
            if vnode.key != but {
                self.uncount_directory(&mut vnode.state());
            }
        }
    }

    /// A new directory's contents, which need not be fetched.
    pub(super) fn keep_new_directory(&self, vnode: &Vnode, parent: Fid, status: &Status) {
        let fid = vnode.key.fid;
        let blob = Blob::create((fid.vnode, fid.unique), (parent.vnode, parent.unique));
        if blob.as_bytes().len() as u64 == status.length {
            self.keep_directory(vnode, Directory { version: status.data_version, blob });
        }
    }

    /// After a change of our own to a directory: the same change to our copy, if it was the only one
    /// (docs/protocol/fileserver.md "14. Cache-manager side rules"); else the copy goes.
    pub(super) fn patch(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        change: &Change<'_>,
        edit: impl FnOnce(&mut Blob) -> bool,
    ) {
        {
            let mut state = vnode.state();
            let mut grown = 0;
            let patched = match state.directory.as_mut() {
                Some(directory) if directory.version.next() == change.status.data_version => {
                    let before = directory.blob.as_bytes().len() as u64;
                    directory.version = change.status.data_version;
                    let done = edit(&mut directory.blob);
                    grown = (directory.blob.as_bytes().len() as u64).saturating_sub(before);
                    done
                }
                _ => false,
            };
            self.directory_bytes.fetch_add(grown, Ordering::Relaxed);
            if !patched {
                self.uncount_directory(&mut state);
            }
            state.kernel_version = None;
        }
        self.refresh(volume, vnode, change);
    }

    /// What a name stands for in a copy of a directory that is about to be changed.
    pub(super) fn before(&self, vnode: &Vnode, blob: &Blob, name: &[u8]) -> Before {
        let found = blob.lookup(name).ok()?;
        Some(found.map(|(number, unique)| vnode.key.sibling(number, unique)))
    }

    /// What a name stands for in a directory: an object of the same volume.
    pub(super) async fn find(&self, vnode: &Arc<Vnode>, name: &[u8]) -> Result<Option<Key>> {
        let key = vnode.key;
        let found = self.with_directory(vnode, |blob| blob.lookup(name)).await?;
        let found = found.map_err(|_| VenusError::new(ErrorKind::Protocol, "lookup").of(key.fid))?;
        Ok(found.map(|(vnode, unique)| key.sibling(vnode, unique)))
    }
}
