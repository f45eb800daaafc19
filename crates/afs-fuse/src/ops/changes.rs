//! Changes of attributes as the kernel asks for them: which of them the server is to make.

use crate::convert::{self, errno, shown_group};
use crate::ops::Operation;
use afs_venus::{NewTime, NodeId, SetAttr};
use afs_wire::ids::Mode;
use fuser::{Errno, TimeOrNow};

/// What a SETATTR request asks to change. Times of access are not kept and so not set.
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
    /// What is to be changed of a node. An owner or group that the node is shown with already is none: `tar` and `cp -p`
    /// give every file to whom it belongs, which only administrators may ask of a server.
    ///
    /// EINVAL for an owner who is nobody in the cell, and for a group that would be shown as another one.
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
            let owner = self.accounts.id(uid).await.ok_or(Errno::EINVAL)?;
            after = self.accounts.account(owner).await;
            wanted.owner = Some(owner);
        }
        if let Some(gid) = gid.filter(|gid| *gid != shown_group(attr.group, after)) {
            let group = if gid == after.gid { 0 } else { gid };
            if shown_group(group, after) != gid {
                return Err(Errno::EINVAL);
            }
            wanted.group = Some(group);
        }
        Ok(wanted)
    }
}
