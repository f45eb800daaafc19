//! Status of objects: from the cache while it is promised, otherwise from a server.

use std::sync::Arc;

use afs_rpc::boxed;
use afs_wire::fs::{self, Status};
use afs_wire::ids::Rights;

use crate::counters::count;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;
use crate::vnode::{Vnode, is_mount_point};

/// How often a status is fetched again because its promise was broken during the fetch. After that it is used once,
/// without a promise.
const FETCHES_MAX: u32 = 3;

/// A status, and whether a server has just given it to the current user.
pub(super) struct KnownStatus {
    pub status: Status,
    pub is_for_caller: bool,
}

impl Venus {
    pub(super) async fn volume_of(&self, key: Key) -> Result<Arc<Volume>> {
        self.volume(key.cell, key.fid.volume).await
    }

    /// The same for a change, which a read-only volume, a backup or a snapshot refuses.
    pub(super) async fn volume_to_change(&self, key: Key) -> Result<Arc<Volume>> {
        let volume = self.volume_of(key).await?;
        match volume.is_writable() {
            true => Ok(volume),
            false => Err(VenusError::new(ErrorKind::ReadOnly, "change").of(key.fid)),
        }
    }

    /// The status of an object, if the user may see it. Its rights are void, see [`Venus::rights_on`].
    pub(super) async fn status(&self, vnode: &Arc<Vnode>) -> Result<Status> {
        let volume = self.volume_of(vnode.key).await?;
        let visible = match self.cached_or_fetched_status(vnode, &volume).await {
            Ok(known) if known.is_for_caller => Ok(known.status),
            Ok(known) => self.require_visible(vnode, &volume, &known.status).await.map(|()| known.status),
            Err(error) => Err(error),
        };
        match visible {
            Err(error) if self.may_show_old(&error) => self.status_promised_last(vnode, error).await,
            visible => visible,
        }
    }

    /// The same for internal use, without a check of the user's rights.
    pub(super) async fn status_without_check(&self, vnode: &Arc<Vnode>) -> Result<Status> {
        let volume = self.volume_of(vnode.key).await?;
        Ok(self.cached_or_fetched_status(vnode, &volume).await?.status)
    }

    async fn cached_or_fetched_status(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
    ) -> Result<KnownStatus> {
        if let Some(status) = vnode.fresh_status(volume, self.now()) {
            count(&self.counters.status_hits);
            return Ok(KnownStatus { status, is_for_caller: false });
        }
        self.missing_status(vnode, volume).await
    }

    /// A call: apart from it, its future takes no room in those of operations whose status is cached.
    #[boxed]
    async fn missing_status(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>) -> Result<KnownStatus> {
        let _guard = vnode.fetching.lock().await;
        self.status_fetched(vnode, volume).await
    }

    /// The same for a caller that holds the `fetching` lock.
    pub(super) async fn status_fetched(
        &self,
        vnode: &Arc<Vnode>,
        volume: &Arc<Volume>,
    ) -> Result<KnownStatus> {
        let mut last = None;
        for _ in 0..FETCHES_MAX {
            if let Some(status) = vnode.fresh_status(volume, self.now()) {
                return Ok(KnownStatus { status, is_for_caller: last.is_some() });
            }
            count(&self.counters.status_misses);
            let before = self.promises.serial();
            let others = self.suspects_near(vnode, volume);
            let revalidated = match others.is_empty() {
                true => None,
                // Boxed: it is rare, and each operation would have room for it on its stack.
                false => Box::pin(self.revalidate(vnode, volume, &others)).await?,
            };
            last = Some(match revalidated {
                Some(status) => status,
                None => self.fetch_status_of_kept(vnode, volume).await?,
            });
            if self.promises.serial() == before {
                // No break came meanwhile: if it is not promised, the server has no promise to grant.
                break;
            }
        }
        let status = last.ok_or(VenusError::new(ErrorKind::Protocol, "FetchStatus"))?;
        let kept = Status { caller_access: Rights::NONE, ..status };
        if vnode.fresh_status(volume, self.now()) != Some(kept) {
            self.kernel.note_unpromised();
        }
        Ok(KnownStatus { status, is_for_caller: true })
    }

    /// Fetches the status from the server, whatever is cached.
    pub(super) async fn fetch_status(&self, vnode: &Arc<Vnode>, volume: &Arc<Volume>) -> Result<Status> {
        let request = fs::FetchStatus { fid: vnode.key.fid };
        let answered = self.call_about(volume, Some(&[vnode.key]), request).await.result;
        let answered = answered.map_err(|error| self.handle_error(vnode, error))?;
        let reply = &answered.value;
        self.promises.record_reply(
            volume,
            vnode,
            &reply.status,
            &reply.callback,
            &reply.sync,
            &answered.origin(),
        );
        Ok(reply.status)
    }

    /// Handles an error of a call about names in a directory. A removed object may be the target of one of the names:
    /// then the directory itself still exists.
    pub(super) fn handle_directory_error(&self, dir: &Arc<Vnode>, error: VenusError) -> VenusError {
        if error.kind != ErrorKind::Stale {
            return self.handle_error(dir, error);
        }
        self.distrust(dir);
        self.invalidate(dir.key);
        error.of(dir.key.fid)
    }

    /// Handles an error of a call about one object: an object removed at the server is removed from the cache too.
    pub(super) fn handle_error(&self, vnode: &Arc<Vnode>, error: VenusError) -> VenusError {
        if error.kind == ErrorKind::Stale {
            self.removed_at_server(vnode);
        }
        if error.kind == ErrorKind::NotDirectory && vnode.state().status.as_ref().is_some_and(is_mount_point)
        {
            // The mount point appears as a directory, of a volume that does not exist.
            return VenusError { kind: ErrorKind::NoVolume, ..error }.of(vnode.key.fid);
        }
        // Refused fetches are frequent and not predictable from cached rights.
        if error.kind == ErrorKind::AccessDenied && !error.operation.starts_with("Fetch") {
            self.was_refused(vnode);
        }
        error.of(vnode.key.fid)
    }
}
