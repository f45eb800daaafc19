//! Recovery of data whose store failed: told, copied out, retried or dropped by the order of the user who wrote it.

use afs_rpc::boxed;
use std::sync::Arc;

use afs_wire::ids::Fid;

use crate::api::{ExplainedFid, TokenOwner, Unsaved, UnsavedPiece, Unsettled};
use crate::data::FileData;
use crate::error::ErrorKind;
use crate::files::Failure;
use crate::identity::User;
use crate::key::{Key, NodeTarget};
use crate::venus::Venus;

/// Limit of a piece, in bytes.
const PIECE_MAX: u64 = 48 << 10;
/// Limit of a list, in entries and in bytes of paths.
const LIST_MAX: usize = 16;
const LIST_PATHS_MAX: usize = 8 << 10;
/// Longest path that is told, in bytes: the kernel's bound.
const PATH_MAX: usize = 4096;

/// Data of one file that no server has.
struct Found {
    key: Key,
    user: User,
    failure: Option<Failure>,
    data: Arc<FileData>,
    is_set_aside: bool,
    /// It survives the mount.
    is_kept: bool,
}

impl Venus {
    /// Data that `owner` has written here and that could not be stored; for root, that of all users. In the order of their
    /// numbers, from the first one above `after`; at most 16, empty at the end. Makes no calls.
    pub fn unsaved(&self, owner: TokenOwner, after: u64) -> Vec<Unsaved> {
        let mut found = self.found_unsaved(owner);
        found.retain(|it| it.number() > after);
        found.sort_by_key(Found::number);
        let mut told: Vec<Unsaved> = Vec::new();
        let mut paths = 0;
        for it in &found {
            let one = self.told(it);
            paths += one.path.as_ref().map_or(0, String::len);
            if told.len() >= LIST_MAX || (paths > LIST_PATHS_MAX && !told.is_empty()) {
                break;
            }
            told.push(one);
        }
        told
    }

    /// The first piece of unsaved data at or after `offset`. A piece is as the data is now, if programs still write to it.
    ///
    /// # Errors
    /// It is not there any more, or not this user's; or the disk of the cache failed.
    #[boxed]
    pub async fn unsaved_piece(
        &self,
        owner: TokenOwner,
        number: u64,
        offset: u64,
    ) -> Result<UnsavedPiece, Unsettled> {
        let data = self.find_unsaved(owner, number)?.data;
        let (part, length) = {
            let content = data.content();
            let parts = content.cached_data().parts(offset.min(content.length)..content.length);
            (parts.into_iter().next(), content.length)
        };
        let Some(part) = part else { return Ok(UnsavedPiece { at: length, bytes: Vec::new() }) };
        let len = (part.end - part.start).min(PIECE_MAX) as usize;
        let read = self.files.disk_briefly(move || data.file.read_at(part.start, len)).await;
        let bytes = read.map_err(Unsettled::Failed)?;
        Ok(UnsavedPiece { at: part.start, bytes: bytes.to_vec() })
    }

    /// The file whose unsaved data can be stored, and who wrote it.
    pub(super) fn to_be_retried(&self, owner: TokenOwner, number: u64) -> Result<(Key, User), Unsettled> {
        let found = self.find_unsaved(owner, number)?;
        if found.is_set_aside { Err(Unsettled::SetAside) } else { Ok((found.key, found.user)) }
    }

    /// Carries out the order to store unsaved data.
    pub(super) async fn retry_ordered(&self, owner: TokenOwner, number: u64) -> Result<(), Unsettled> {
        let found = self.find_unsaved(owner, number)?;
        if found.is_set_aside {
            return Err(Unsettled::SetAside);
        }
        let vnode = self.vnodes.peek(found.key).ok_or(Unsettled::Gone)?;
        found.data.content().failures = 0;
        // One that is thought to be unreachable is not called otherwise.
        self.check_servers().await;
        let stored = self.as_user(found.user).in_background().retry_listed(&vnode, &found.data).await;
        stored.map_err(Unsettled::Failed)?;
        match found.data.content().is_dirty() {
            // A program has it open for writing, and stores it at its close.
            true => Err(Unsettled::InUse),
            false => Ok(()),
        }
    }

    /// Drops unsaved data: the file is that of the server again.
    ///
    /// # Errors
    /// See [`Unsettled`].
    #[boxed]
    pub async fn discard_unsaved(&self, owner: TokenOwner, number: u64) -> Result<(), Unsettled> {
        let found = self.find_unsaved(owner, number)?;
        if found.is_set_aside {
            let dropped = self.files.drop_set_aside(number).then_some(()).ok_or(Unsettled::Gone);
            self.files.records_dropped().await;
            return dropped;
        }
        let vnode = self.vnodes.peek(found.key).ok_or(Unsettled::Gone)?;
        let _guard = vnode.changing.lock().await;
        // A store may have succeeded meanwhile.
        let found = self.find_unsaved(owner, number)?;
        if vnode.state().file.opens() > 0 || found.data.content().uses.count() > 0 {
            return Err(Unsettled::InUse);
        }
        if !self.files.give_up(&vnode) {
            return Err(Unsettled::InUse);
        }
        self.files.records_dropped().await;
        tracing::warn!(fid = %found.key.fid, "unsaved data was discarded by the order of {owner}");
        self.distrust(&vnode);
        self.invalidate(vnode.key);
        Ok(())
    }

    fn find_unsaved(&self, owner: TokenOwner, number: u64) -> Result<Found, Unsettled> {
        let mut all = self.found_unsaved(owner).into_iter();
        all.find(|it| it.number() == number).ok_or(Unsettled::Gone)
    }

    /// What this user may be told of.
    fn found_unsaved(&self, owner: TokenOwner) -> Vec<Found> {
        let listed = self.files.failed_stores().into_iter().filter_map(|(key, retry)| {
            let data = self.vnodes.peek(key)?.state().file.data().cloned()?;
            let is_dirty = data.content().is_dirty();
            let (user, failure, is_kept) = (retry.user, retry.failure, retry.kept.is_some());
            let found = Found { key, user, failure, data, is_set_aside: false, is_kept };
            is_dirty.then_some(found)
        });
        let aside = self.files.all_set_aside().into_iter().map(|it| Found {
            key: it.key,
            user: it.user,
            failure: Some(it.failure),
            data: it.data,
            is_set_aside: true,
            is_kept: it.kept.is_some(),
        });
        let may_know = |it: &Found| owner.uid() == 0 || it.user.is_some_and(|user| user.uid() == owner.uid());
        listed.chain(aside).filter(may_know).collect()
    }

    fn told(&self, found: &Found) -> Unsaved {
        let (length, unsaved, present) = {
            let content = found.data.content();
            (content.length, content.dirty_bytes(), content.present.bytes())
        };
        let nodes = self.kernel.nodes();
        let path = nodes.held(NodeTarget::Object(found.key)).and_then(|node| nodes.path(node));
        let path = path.filter(|path| path.len() <= PATH_MAX);
        let Fid { volume, vnode, unique } = found.key.fid;
        Unsaved {
            number: found.number(),
            path: path.map(|path| String::from_utf8_lossy(&path).into_owned()),
            cell: self.location.cell(found.key.cell).map_or(String::new(), |cell| cell.name.to_string()),
            fid: ExplainedFid { volume: volume.0, vnode: vnode.0, unique: unique.0 },
            uid: found.user.map(TokenOwner::uid),
            length_bytes: length,
            unsaved_bytes: unsaved,
            missing_bytes: length.saturating_sub(present),
            is_set_aside: found.is_set_aside,
            is_kept: found.is_kept,
            error: found.failure.as_ref().map(|failure| failure.error.to_string()),
            advice: advice(found).into(),
            since: found.failure.as_ref().map(|failure| u64::from(failure.since.0)),
        }
    }
}

impl Found {
    fn number(&self) -> u64 {
        self.data.file.id()
    }
}

/// What may help.
fn advice(found: &Found) -> &'static str {
    if found.is_set_aside {
        return "save it to a file of your own and copy it to where it can be stored, then discard it";
    }
    match found.failure.as_ref().map(|failure| failure.error.kind) {
        None => "it is stored soon",
        Some(ErrorKind::OverQuota) => "remove files in the volume or have its quota raised, then retry",
        Some(ErrorKind::NoSpace) => "retry when the server's partition has room",
        Some(ErrorKind::TokenExpired) => "log in again, which retries it",
        Some(ErrorKind::ServerUnreachable | ErrorKind::VolumeBusy | ErrorKind::VolumeOffline) => {
            "retry when the server is back"
        }
        Some(ErrorKind::NoVolume) => "save it: the volume is gone; retry if it is restored",
        Some(_) => "retry, or save it to a file of your own",
    }
}
