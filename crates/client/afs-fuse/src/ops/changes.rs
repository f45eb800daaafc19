//! Choice of the attribute changes of a SETATTR request that the server has to make.

use crate::accounts::{NoOwner, kept_group, shown_group};
use crate::convert::{self, errno};
use crate::ops::Operation;
use afs_venus::{NewTime, NodeId, SetAttr};
use afs_wire::ids::Mode;
use fuser::{Errno, TimeOrNow};

/// The changes that a SETATTR request contains. Times of last access are not kept, so they are not set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) mtime: Option<NewTime>,
}

impl Change {
    pub(crate) fn new(
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        mtime: Option<TimeOrNow>,
    ) -> Self {
        Self { mode, uid, gid, size, mtime: mtime.map(convert::new_time) }
    }
}

impl Operation {
    /// The changes to make to a node. An owner or group as which the node is shown already is no change: `tar` and `cp
    /// -p` set the owner of every file, which only administrators may do at a server.
    ///
    /// EINVAL for an owner of another cell than the home cell, or one whose number is too large to be kept; ETIMEDOUT if nothing can be
    /// known of the owner now.
    pub(super) async fn wanted(&self, node: NodeId, change: Change) -> Result<SetAttr, Errno> {
        let Change { mode, uid, gid, size, mtime } = change;
        let mut wanted =
            SetAttr { mode: mode.map(|m| Mode(m & 0o7777)), owner: None, group: None, size, mtime };
        if uid.is_none() && gid.is_none() {
            return Ok(wanted);
        }
        let attr = self.venus.getattr(node).await.map_err(|error| errno(&error))?;
        let before = self.account(&attr).await;
        let mut after = before;
        if let Some(uid) = uid.filter(|uid| *uid != before.uid) {
            let owner = match self.accounts.id(uid).await {
                Ok(owner) if attr.is_home => owner,
                Err(NoOwner::NoReply) if attr.is_home => return Err(Errno::ETIMEDOUT),
                _ => return Err(Errno::EINVAL),
            };
            after = self.accounts.account(owner).await;
            wanted.owner = Some(owner);
        }
        if let Some(gid) = gid.filter(|gid| *gid != shown_group(attr.group, after)) {
            wanted.group = Some(kept_group(gid, after));
        }
        Ok(wanted)
    }
}
