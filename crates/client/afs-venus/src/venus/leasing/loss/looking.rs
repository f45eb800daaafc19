//! Looks at names in the server's directories while a lost lease is made good.

use std::sync::Arc;

use afs_wire::fs::{self, FileKind, Name, Status};
use afs_wire::ids::Fid;

use super::looks::Look;
use super::state::Loss;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::leases::Lease;
use crate::promise::Promise;
use crate::venus::Venus;
use crate::venus::directory::{DIRECTORY_MAX, FETCHES_MAX, checked_blob};
use crate::venus::leasing::may_be_sent_again;

/// A name in a directory of the server.
pub(super) type Named = (Fid, Name);

impl Venus {
    /// The object that the server has under a name; `None` also if there is no such directory.
    pub(super) async fn object_of(&self, loss: &mut Loss<'_>, named: &Named) -> Result<Option<Fid>> {
        let (dir, name) = named;
        if self.is_current(loss, *dir).await?
            && let Some(look) = loss.looks.of(*dir)
        {
            return look.find(name);
        }
        let look = match Box::pin(self.directory_as_it_is(loss.lease, *dir)).await {
            Err(error) if matches!(error.kind, ErrorKind::Stale | ErrorKind::NotFound) => return Ok(None),
            look => look?,
        };
        let found = look.find(name);
        loss.looks.keep(look);
        found
    }

    /// Whether there is a copy of the directory as it is.
    async fn is_current(&self, loss: &Loss<'_>, dir: Fid) -> Result<bool> {
        let Some(look) = loss.looks.of(dir) else { return Ok(false) };
        if look.is_promised(&loss.lease.volume, self.now()) {
            return Ok(true);
        }
        let now = self.status_of(loss.lease, dir).await?;
        Ok(now.is_some_and(|now| now.data_version == look.version))
    }

    async fn directory_as_it_is(&self, lease: &Arc<Lease>, dir: Fid) -> Result<Look> {
        let vnode = self.vnode(Key::new(lease.dir.cell, dir));
        for _ in 0..FETCHES_MAX {
            let answered = self.fetch_small_as_it_is(&lease.volume, dir, DIRECTORY_MAX).await?;
            let (bytes, reply) = &answered.value;
            let is_directory = reply.status.kind == FileKind::Directory;
            // Otherwise it was changed between the two.
            if is_directory && reply.status.length == bytes.len() as u64 {
                let (reset, margin) = (&answered.server.reset, self.limits.promise_margin);
                let promise = Promise::of(&reply.callback, reset, answered.serial, answered.started, margin);
                let (blob, version) = (checked_blob(dir, bytes.clone())?, reply.status.data_version);
                return Ok(Look { dir: vnode, version, promise, blob });
            }
        }
        Err(VenusError::new(ErrorKind::Protocol, "FetchData").of(dir))
    }

    /// The name that an object has: the one that was decided, or the one that it kept because it could not be renamed. `None` if
    /// neither is its name (any more).
    pub(super) async fn name_of_object(
        &self,
        loss: &mut Loss<'_>,
        object: Key,
        decided: Named,
    ) -> Result<Option<Named>> {
        let fid = loss.lease.in_place_of(object.fid);
        let kept = loss.lease.fates(|fates| fates.kept(object));
        for named in std::iter::once(decided).chain(kept) {
            if self.object_of(loss, &named).await? == Some(fid) {
                return Ok(Some(named));
            }
        }
        Ok(None)
    }
    /// The status of an object; `None` if the server has none.
    pub(super) async fn status_of(&self, lease: &Lease, fid: Fid) -> Result<Option<Status>> {
        let call = self.calls.call(&self.context, &lease.volume, fs::FetchStatus { fid });
        match Box::pin(call).await.result {
            Ok(answered) => Ok(Some(answered.value.status)),
            Err(error) if may_be_sent_again(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }
}
