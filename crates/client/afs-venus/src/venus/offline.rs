//! Reading without a promise: what its users have pinned for that is shown as it was last promised, as long as no server replies.
//!
//! An operation that only reads first asks the server, as ever. If no server replies, and then alone, the record of the object
//! decides: its status, and the rights that the user was known to have. Nothing is written that way, and nothing stays valid: the
//! next operation asks again.

use std::sync::Arc;

use afs_rpc::boxed;
use afs_wire::dir::{self, Blob};
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::{Rights, UnixSeconds};

use crate::api::Unpromised;
use crate::cache::{OfflineObject, OfflineRecord};
use crate::calls::CallContext;
use crate::counters::count;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::venus::Venus;
use crate::vnode::{Vnode, sees};

impl Venus {
    /// The same for an operation that only reads.
    pub(super) fn reading(&self) -> Venus {
        self.reading_unless(false)
    }

    /// The same unless it writes.
    pub(super) fn reading_unless(&self, writes: bool) -> Venus {
        self.with_context(CallContext { may_be_old: !writes && self.pins.any_offline(), ..self.context })
    }

    /// The status as it was promised last, after an error that says that no server replies; else the error. Without the right to
    /// see it the error, too. Boxed, as what seldom happens takes no room in the futures of all operations.
    #[boxed]
    pub(super) async fn status_promised_last(&self, vnode: &Arc<Vnode>, error: VenusError) -> Result<Status> {
        match self.promised_last(vnode).await {
            Some((status, rights)) if sees(status.kind, rights) => {
                self.note_unpromised(vnode.key, &error);
                Ok(status)
            }
            _ => Err(error),
        }
    }

    /// The same of the rights on an object.
    #[boxed]
    pub(super) async fn rights_promised_last(&self, vnode: &Arc<Vnode>, error: VenusError) -> Result<Rights> {
        self.promised_last(vnode).await.map(|(_, rights)| rights).ok_or(error)
    }

    /// Brings the contents of a directory as they were promised last into memory, for a user who may see them; else the error.
    #[boxed]
    pub(super) async fn contents_promised_last(&self, vnode: &Arc<Vnode>, error: VenusError) -> Result<()> {
        let Some((status, rights)) = self.promised_last(vnode).await else { return Err(error) };
        let may_look = status.kind == FileKind::Directory && rights.contains(Rights::LOOKUP);
        if !may_look || !self.contents_are_here(vnode, &status).await? {
            return Err(error);
        }
        self.note_unpromised(vnode.key, &error);
        Ok(())
    }

    /// True if the contents of a directory of this status are in memory now.
    async fn contents_are_here(&self, vnode: &Arc<Vnode>, status: &Status) -> Result<bool> {
        let version = status.data_version;
        if vnode.state().directory.as_ref().is_some_and(|held| held.version == version) {
            return Ok(true);
        }
        let kept = self.files.contents(vnode.key, version, status.length).await?;
        let Some(mut blob) = kept.and_then(|bytes| Blob::from_bytes(bytes).ok()) else { return Ok(false) };
        let is_sound = dir::check(&mut blob).is_ok();
        if is_sound {
            self.names.directories().keep(vnode, version, blob);
        }
        Ok(is_sound)
    }

    /// True if this operation may show what was pinned for that as it was promised last, after this error: it only reads, and no
    /// server replied. A code is what a server has replied.
    pub(super) fn may_show_old(&self, error: &VenusError) -> bool {
        let is_away = error.kind == ErrorKind::ServerUnreachable && error.code.is_none();
        self.context.may_be_old && is_away
    }

    /// The status of an object as it was promised last, and the rights of the user as they were known then.
    async fn promised_last(&self, vnode: &Vnode) -> Option<(Status, Rights)> {
        let record = match self.files.offline(vnode.key).await {
            Ok(Some(OfflineRecord::Object(record))) => Arc::new(record),
            Ok(_) => return None,
            Err(error) => {
                tracing::warn!(fid = %vnode.key.fid, %error, "it is not known whether it may be read without its server");
                return None;
            }
        };
        let status = shown_as_promised(vnode, &record);
        Some((status, self.rights_known_last(vnode.key, &status, &record).await))
    }

    /// The rights of the user on an object as they were known last: those on a file follow from its directory.
    async fn rights_known_last(&self, key: Key, status: &Status, record: &OfflineObject) -> Rights {
        let own = self.reported_last(record);
        if status.kind == FileKind::Directory {
            return own | record.status.anonymous_access;
        }
        let parent = key.sibling(status.parent, status.parent_unique);
        match self.files.offline(parent).await {
            Ok(Some(OfflineRecord::Object(dir))) if dir.status.kind == FileKind::Directory => {
                let listed = self.reported_last(&dir) | dir.status.anonymous_access;
                (listed & !Rights::ADMINISTER) | (own & Rights::ADMINISTER)
            }
            _ => Rights::NONE,
        }
    }

    /// The rights that a server reported to the user, who has pinned the object.
    pub(super) fn reported_last(&self, record: &OfflineObject) -> Rights {
        let own = record.readers.iter().filter(|reader| Some(reader.owner) == self.context.user);
        own.fold(Rights::NONE, |rights, reader| rights | reader.rights)
    }

    /// Records that an object is read without a promise; the first time of its volume is logged.
    fn note_unpromised(&self, key: Key, error: &VenusError) {
        self.kernel.note_unpromised();
        let Some(volume) = self.location.volume_of(key) else { return };
        if volume.begin_unpromised(self.wall()) {
            count(&self.counters.volumes_unpromised);
            let volume = volume.name();
            tracing::warn!(
                %volume, %error,
                "pinned files of the volume are read without a promise, as they were last known, until a server replies"
            );
        }
    }

    /// Since when an object is read without a promise, and as of when; `None`: it is not.
    pub(super) fn unpromised(&self, key: Key) -> Option<Unpromised> {
        let volume = self.location.volume_of(key)?;
        let since = volume.unpromised_since()?;
        let vnode = self.vnodes.peek(key)?;
        let state = vnode.state();
        let record = state.promised_last.as_ref().filter(|_| !state.is_promised(&volume, self.now()))?;
        let ago = |then: UnixSeconds| u64::from(self.wall().0.saturating_sub(then.0));
        Some(Unpromised { since_seconds_ago: ago(since), as_of_seconds_ago: ago(record.promised_at) })
    }
}

/// Puts what a record tells of an object where it is not known. Returns the status.
fn shown_as_promised(vnode: &Vnode, record: &Arc<OfflineObject>) -> Status {
    let mut state = vnode.state();
    state.promised_last = Some(record.clone());
    if state.link.is_none() && !record.link.is_empty() {
        state.link = Some(record.link.clone());
    }
    // What was reported later is not taken back.
    *state.status.get_or_insert(record.status)
}
