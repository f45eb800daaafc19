//! StoreACL in an earlier state of a volume: an empty list closes the past of a directory, its own list opens it again.

use std::sync::Arc;

use afs_volume::{VolumeError, VolumeHeader};
use afs_wire::acl::NamedAcl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, FileKind};
use afs_wire::ids::{Fid, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vol::{CLOSED_MAX, ClosedPast};

use super::acl::Known;
use super::object::{Found, sync};
use super::past::{Present, is_past};
use super::server::FileServer;
use crate::access::Operation;
use crate::call_context::CallContext;
use crate::volume_states::Site;

/// What a list means that is stored in an earlier state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Closed,
    Open,
}

impl FileServer {
    /// The object, if its volume is an earlier state of another one.
    pub(super) async fn find_past(
        &self,
        context: &CallContext,
        fid: Fid,
    ) -> Result<Option<Found>, AbortCode> {
        let header = self.partitions.volume(fid.volume).map(|volume| volume.header());
        match header.is_some_and(|header| is_past(&header)) {
            true => self.find(context, fid).await.map(Some),
            false => Ok(None),
        }
    }

    /// Closes the past of a directory, in this state of its volume and all older ones, for who may change its list today; or opens
    /// it, for administrators.
    ///
    /// # Errors
    /// ENOTDIR; EROFS for any other list, and without a read-write volume; EACCES for others; EPERM for opening by others than administrators;
    /// ENOENT where this directory is not closed; ENOSPC: too many directories are closed, and one above can be closed in place of several.
    pub(super) async fn store_past_acl(
        self: &Arc<Self>,
        context: &CallContext,
        fid: Fid,
        found: Found,
        named: &NamedAcl,
    ) -> Result<fs::StatusReply, AbortCode> {
        if !found.record.is_directory() {
            return Err(Errno::ENOTDIR.to_uae());
        }
        let wanted = self.wanted(&found, named).await?;
        let present = found.past.as_ref().and_then(|past| past.present()).ok_or(Errno::EROFS.to_uae())?;
        let may = present.check(&context.subject, FileKind::Directory, Operation::StoreAcl);
        match wanted {
            Wanted::Closed => may?,
            Wanted::Open if context.subject.is_administrator() => {}
            Wanted::Open => return Err(Errno::EPERM.to_uae()),
        }
        self.set_closed(&found, present, wanted).await?;
        self.clients.break_pasts(present.header().id);
        let found = self.found(found.served, found.header, fid).await?;
        let status = self.status_of(&context.subject, &found, &found.record);
        Ok(fs::StatusReply { status, sync: sync(&found.header) })
    }

    async fn wanted(&self, found: &Found, named: &NamedAcl) -> Result<Wanted, AbortCode> {
        if named.positive.is_empty() && named.negative.is_empty() {
            return Ok(Wanted::Closed);
        }
        let known = Known::of_names_and(self.guard.names(), named, &found.acl).await?;
        match named.resolve(&known) {
            Ok(acl) if acl == *found.acl => Ok(Wanted::Open),
            _ => Err(Errno::EROFS.to_uae()),
        }
    }

    async fn set_closed(&self, found: &Found, present: &Present, wanted: Wanted) -> Result<(), AbortCode> {
        let store = self.partitions.store(found.served.site.partition).ok_or(AbortCode::VNOVOL)?;
        let volume = store.volume(present.header().id).ok_or(AbortCode::VNOVOL)?;
        let (vnode, unique, until) = (found.record.vnode, found.record.unique, found.header.creation_date);
        let oldest = oldest_past(store.volumes().iter().map(|volume| volume.header()), volume.id());
        let root = Fid::root(volume.id());
        let states = self.states.clone();
        let site = Site { volume: volume.id(), ..found.served.site };
        let edited = volume.edit(move |tx| {
            // A move carries what is closed within its transaction.
            states.check(site, true).map_err(VolumeError::Refused)?;
            let all = &mut tx.edit_header().closed_pasts;
            Ok(match wanted {
                Wanted::Closed => close(all, ClosedPast { vnode, unique, until }, oldest),
                Wanted::Open => open(all, |closed| (closed.vnode, closed.unique) == (vnode, unique)),
            })
        });
        edited.await.map_err(|error| self.code(root, &error))?.map_err(Errno::to_uae)
    }
}

/// The creation time of the oldest state of a volume.
fn oldest_past(all: impl Iterator<Item = Arc<VolumeHeader>>, of: VolumeId) -> UnixSeconds {
    let pasts = all.filter(|header| header.parent == of && header.kind != VolumeKind::ReadWrite);
    pasts.map(|header| header.creation_date).min().unwrap_or_default()
}

/// Adds a directory, without those of which no state is left that is old enough.
fn close(all: &mut Vec<ClosedPast>, new: ClosedPast, oldest: UnixSeconds) -> Result<(), Errno> {
    let same = |closed: &ClosedPast| (closed.vnode, closed.unique) == (new.vnode, new.unique);
    if let Some(known) = all.iter_mut().find(|closed| same(closed)) {
        known.until = known.until.max(new.until);
        return Ok(());
    }
    all.retain(|closed| closed.until >= oldest);
    if all.len() >= CLOSED_MAX {
        return Err(Errno::ENOSPC);
    }
    all.push(new);
    Ok(())
}

fn open(all: &mut Vec<ClosedPast>, is_it: impl Fn(&ClosedPast) -> bool) -> Result<(), Errno> {
    let before = all.len();
    all.retain(|closed| !is_it(closed));
    if all.len() < before { Ok(()) } else { Err(Errno::ENOENT) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::{Uniquifier, VnodeId};

    fn at(vnode: u32, until: u32) -> ClosedPast {
        ClosedPast { vnode: VnodeId(vnode), unique: Uniquifier(1), until: UnixSeconds(until) }
    }

    #[test]
    fn directories_are_closed_once_and_those_without_a_past_are_forgotten_first() {
        let mut all = Vec::new();
        for vnode in 0..CLOSED_MAX as u32 {
            assert_eq!(close(&mut all, at(2 * vnode + 1, 10 + vnode), UnixSeconds(10)), Ok(()));
        }
        assert_eq!(close(&mut all, at(1, 5), UnixSeconds(10)), Ok(()), "again");
        assert_eq!(all[0], at(1, 10), "an older state changes nothing");
        assert_eq!(close(&mut all, at(1, 90), UnixSeconds(10)), Ok(()));
        assert_eq!((all[0], all.len()), (at(1, 90), CLOSED_MAX));
        assert_eq!(close(&mut all, at(999, 90), UnixSeconds(10)), Err(Errno::ENOSPC));
        assert_eq!(close(&mut all, at(999, 90), UnixSeconds(12)), Ok(()), "the state of 11 is gone");
        assert_eq!(all.len(), CLOSED_MAX);
        assert_eq!(open(&mut all, |closed| closed.vnode == VnodeId(3)), Err(Errno::ENOENT));
        assert_eq!(open(&mut all, |closed| closed.vnode == VnodeId(999)), Ok(()));
    }
}
