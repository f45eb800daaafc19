//! Contents of directories: fetched as a whole, looked up locally, and patched after changes by this client.

use std::sync::Arc;

use afs_wire::dir::{self, Blob};
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{Fid, Rights};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::promises::ChangeReply;
use crate::venus::Venus;
use crate::vnode::{Vnode, is_mount_point};

/// Longest directory (docs/protocol/directory.md "1. Pages and slots").
pub(super) const DIRECTORY_MAX: u64 = dir::PAGES_MAX as u64 * dir::PAGE_LEN as u64;

/// True if rights permit seeing the names in a directory.
pub(super) fn may_look(rights: Rights) -> bool {
    rights.contains(Rights::LOOKUP)
}

/// Whether a directory whose contents are here has probably changed: its server has broken the promise on it alone, or this client has
/// ended it, as after a change of its access list.
pub(super) fn has_changed(vnode: &Vnode) -> bool {
    let state = vnode.state();
    let is_short = state.status.is_some_and(|status| status.length <= WITH_STATUS_MAX);
    state.directory.is_some() && is_short && state.promise.is_none() && state.broken > state.as_of
}

/// Longest directory that is fetched in place of its status.
const WITH_STATUS_MAX: u64 = 64 << 10;

/// How often a directory is fetched again because it changed during the fetch.
pub(super) const FETCHES_MAX: u32 = 8;

/// The contents of a directory as a server sent them.
///
/// # Errors
/// They are damaged.
pub(super) fn checked_blob(fid: Fid, bytes: Vec<u8>) -> Result<Blob> {
    let damaged = |what: &dyn std::fmt::Display| {
        tracing::warn!(%fid, "a directory is damaged: {what}");
        VenusError::new(ErrorKind::Protocol, "FetchData").of(fid)
    };
    let mut blob = Blob::from_bytes(bytes).map_err(|error| damaged(&error))?;
    dir::check(&mut blob).map_err(|error| damaged(&error))?;
    Ok(blob)
}

impl Venus {
    /// Runs `work` on the contents of a directory, which were promised or just fetched, for a user who may see them.
    pub(super) async fn with_directory<T>(
        &self,
        vnode: &Arc<Vnode>,
        work: impl FnOnce(&Blob) -> T,
    ) -> Result<T> {
        if vnode.state().status.as_ref().is_some_and(is_mount_point) {
            // Boxed: it is rare, and each operation would have room for it on its stack.
            return Err(Box::pin(self.not_crossed(vnode)).await);
        }
        let volume = self.volume_of(vnode.key).await?;
        let mut work = Some(work);
        for _ in 0..FETCHES_MAX {
            if self.known_rights(vnode, &volume, may_look).is_some_and(may_look)
                && let Some(done) = self.look(vnode, &mut work)
            {
                return done;
            }
            let _guard = vnode.fetching.lock().await;
            let has_contents = vnode.state().directory.is_some();
            let mut may = false;
            if has_contents {
                let known = self.status_fetched(vnode, &volume).await?;
                let rights = known.status.caller_access | known.status.anonymous_access;
                may =
                    may_look(rights) || may_look(self.rights_while_fetching(vnode, &volume, may_look).await?);
            }
            let matches = {
                let state = vnode.state();
                state.directory.as_ref().map(|directory| directory.version)
                    == state.status.map(|s| s.data_version)
                    && state.directory.is_some()
            };
            // The server decides: it permits the volume's owner to look whatever the access list says.
            if !matches || !may {
                self.fetch_directory(vnode, &volume).await?;
            }
            // Used now even if the promise is broken already: the contents were valid when the server replied.
            if vnode.fresh_status(&volume, self.now()).is_none() {
                self.kernel.note_unpromised();
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
        work.take().map(|work| Ok(work(directory.blob())))
    }

    /// The status of an object, whatever is cached. That of a directory which has changed comes with its contents, if those of before are
    /// here: they are in use. The caller holds the `fetching` lock.
    pub(super) async fn fetch_status_of_kept(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
    ) -> Result<Status> {
        if has_changed(vnode) {
            match self.fetch_directory(vnode, volume).await {
                Ok(Some(status)) => return Ok(status),
                // It is changing, or the user may see its status alone.
                Ok(None) => {}
                Err(error) if error.kind == ErrorKind::AccessDenied => {}
                Err(error) => return Err(error),
            }
        }
        self.fetch_status(vnode, volume).await
    }

    /// Fetches contents and status in one call. `None`: it changed meanwhile.
    async fn fetch_directory(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>) -> Result<Option<Status>> {
        if !vnode.key.fid.is_directory() {
            return Err(VenusError::new(ErrorKind::NotDirectory, "lookup").of(vnode.key.fid));
        }
        let fetched = self.fetch_small(volume, vnode.key.fid, DIRECTORY_MAX).await;
        let answered = fetched.map_err(|error| self.handle_error(vnode, error))?;
        let origin = answered.origin();
        let (bytes, reply) = &answered.value;
        if reply.status.length != bytes.len() as u64 {
            return Ok(None);
        }
        let blob = checked_blob(vnode.key.fid, bytes.clone())?;
        self.promises.record_reply(volume, vnode, &reply.status, &reply.callback, &reply.sync, &origin);
        let removed = self.names.directories().keep(vnode, reply.status.data_version, blob);
        self.check_existence_soon(vnode.key, removed);
        Ok(Some(reply.status))
    }

    /// Applies a change by this client to the local copy of a directory, if no other change came in between
    /// (docs/protocol/fileserver.md "14. Cache-manager side rules"); otherwise drops the copy.
    pub(super) fn patch(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
        change: &ChangeReply<'_>,
        edit: impl FnOnce(&mut Blob) -> bool,
    ) {
        self.names.directories().patch(vnode, change.status.data_version, edit);
        self.promises.record_change(volume, vnode, change);
    }

    /// The same by the contents as they were promised last, where an operation that only reads may show them after this error.
    pub(super) async fn with_old_directory<T>(
        &self,
        vnode: &Arc<Vnode>,
        error: VenusError,
        work: impl FnOnce(&Blob) -> T,
    ) -> Result<T> {
        if !self.may_show_old(&error) {
            return Err(error);
        }
        self.contents_promised_last(vnode, error.clone()).await?;
        self.look(vnode, &mut Some(work)).unwrap_or(Err(error))
    }

    /// Target of a name in a directory: an object of the same volume.
    pub(super) async fn find(&self, vnode: &Arc<Vnode>, name: &[u8]) -> Result<Option<Key>> {
        let key = vnode.key;
        let found = match self.with_directory(vnode, |blob| blob.lookup(name)).await {
            Err(error) => self.with_old_directory(vnode, error, |blob| blob.lookup(name)).await?,
            Ok(found) => found,
        };
        let found = found.map_err(|_| VenusError::new(ErrorKind::Protocol, "lookup").of(key.fid))?;
        Ok(found.map(|(vnode, unique)| key.sibling(vnode, unique)))
    }
}
