//! Attributes: reading, changing, and access(2).

use afs_rpc::boxed;
use std::sync::Arc;

use afs_wire::fs::{self, FileKind, SetStatus, Status};
use afs_wire::ids::{Fid, FileTime, Mode, ViceId};

use crate::api::{Access, Attr, HandleId, Kind, NewTime, NodeId, SetAttr};
use crate::data::FileData;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{CellIndex, Key, NodeTarget};
use crate::venus::Venus;
pub(super) use crate::vnode::may;
use crate::vnode::{Vnode, is_mount_point, kind_of};

/// Shorter files have no holes in the cache.
const HOLE_MIN: u64 = 64 << 10;
/// What every symbolic link is shown with: its mode restricts nobody, and other file systems show this one.
const SHOWN_LINK_MODE: Mode = Mode(0o777);

/// The last status of a file, while all of it is open here.
fn last_status(vnode: &Vnode) -> Option<Status> {
    let state = vnode.state();
    let is_whole = state.file.data().is_some_and(|data| data.content().is_complete());
    let status = state.status.filter(|_| state.file.opens() > 0 && is_whole)?;
    Some(Status { link_count: 0, ..status })
}

impl Venus {
    /// Attributes of a node.
    #[boxed]
    pub async fn getattr(&self, node: NodeId) -> Result<Attr> {
        let key = match self.node_target(node)? {
            NodeTarget::Object(key) => key,
            NodeTarget::Snapshots(cell, volume) => {
                return self.getattr_of_snapshots(node, cell, volume).await;
            }
            NodeTarget::Cells => return Ok(self.cells_attr()),
            NodeTarget::Unreached(..) => return Ok(self.unreached_attr(node)),
        };
        let vnode = self.vnode(key);
        self.files.note_kernel_writes(&vnode).await?;
        // A mount point is shown although the servers of its volume are away: nobody waits for them here.
        let is_mounted = key.is_volume_root() && node != NodeId::ROOT;
        let me = if is_mounted { self.glancing() } else { self.with_context(self.context) };
        let status = match me.reading().status_while_open(&vnode).await {
            Err(error)
                if is_mounted && matches!(error.kind, ErrorKind::NoVolume | ErrorKind::ServerUnreachable) =>
            {
                return Ok(self.attr_without_volume(key, node));
            }
            other => other?,
        };
        self.promises.invalidate_if_unpromised(NodeTarget::Object(key));
        Ok(self.attr(key, node, &status))
    }

    /// Attributes of the root of a volume that does not exist any more, or of which no server replies: those of a mount point without a
    /// volume. The names in the directory around it are invalidated.
    fn attr_without_volume(&self, key: Key, node: NodeId) -> Attr {
        self.invalidate(key);
        let entered = self.location.volume_of(key).and_then(|volume| volume.entered());
        if let Some(NodeTarget::Object(around)) =
            entered.and_then(|entered| self.kernel.nodes().node_target(entered.parent))
        {
            self.invalidate(around);
        }
        Attr { node, fid: key.fid, mode: Mode(0o555), nlink: 2, is_public: false, ..self.cells_attr() }
    }

    /// Changes attributes. `handle` is the handle through which the request came, if any.
    ///
    /// A length set through a handle that may write, and a time set on a file with dirty data, are sent with the next
    /// store; all other changes are at the server on return.
    #[boxed]
    pub async fn setattr(&self, node: NodeId, handle: Option<HandleId>, change: SetAttr) -> Result<Attr> {
        let vnode = self.vnode(self.key(node, "setattr")?);
        let volume = self.volume_to_change(vnode.key).await?;
        if let Some(size) = change.size {
            self.set_length(&vnode, handle, size).await?;
        }
        let mut wanted = self.wanted_status(&change);
        self.files.note_kernel_writes(&vnode).await?;
        if let Some(time) = wanted.mod_time
            && self.is_dirty(&vnode)
        {
            self.require_write(&vnode).await?;
            self.set_pending_time(&vnode, time);
            wanted.mod_time = None;
        }
        if !wanted.is_empty()
            && !vnode.state().file.is_orphan()
            && !self.set_under_lease(&vnode, &wanted).await?
        {
            let request = fs::StoreStatus { fid: vnode.key.fid, status: wanted };
            let stored = self.call_about(&volume, Some(&[vnode.key]), request).await;
            let answered = stored.result.map_err(|error| self.handle_error(&vnode, error))?;
            self.promises.record_change(
                &volume,
                &vnode,
                &answered.change(&answered.value.status, &answered.value.sync),
            );
        }
        self.getattr(node).await
    }

    fn wanted_status(&self, change: &SetAttr) -> SetStatus {
        SetStatus {
            mod_time: change.mtime.map(|time| match time {
                NewTime::Now => self.time(),
                NewTime::At(time) => time,
            }),
            owner: change.owner,
            group: change.group,
            mode: change.mode.map(|mode| Mode(mode.0 & Mode::ALL)),
            fsync: false,
        }
    }

    /// An error for a user who may not write: the change would be stored with the token of a user who may.
    pub(super) async fn require_write(&self, vnode: &Arc<Vnode>) -> Result<()> {
        let status = self.status_or_dirty(vnode).await?;
        let wanted = Access { write: true, ..Access::default() };
        self.require(vnode, &status, "setattr", |rights| may(&status, rights, wanted)).await
    }

    fn is_dirty(&self, vnode: &Vnode) -> bool {
        let data = vnode.state().file.data().cloned();
        data.is_some_and(|data| data.content().is_dirty())
    }

    fn set_pending_time(&self, vnode: &Vnode, time: FileTime) {
        if let Some(data) = vnode.state().file.data().cloned() {
            data.content().changed_at = Some(time);
        }
    }

    /// The status; for a file with dirty data also without a promise if the server is unreachable, since the local data
    /// is newer anyway.
    pub(super) async fn status_or_dirty(&self, vnode: &Arc<Vnode>) -> Result<Status> {
        let unsaved = self.is_dirty(vnode).then(|| vnode.state().status).flatten();
        match self.status(vnode).await {
            Err(error) if error.kind == ErrorKind::ServerUnreachable => unsaved.ok_or(error),
            other => other,
        }
    }

    /// The same for those who have the file open: its readers go on when another machine has removed it.
    pub(super) async fn status_while_open(&self, vnode: &Arc<Vnode>) -> Result<Status> {
        match self.status_or_dirty(vnode).await {
            Err(error) if error.kind == ErrorKind::Stale => last_status(vnode).ok_or(error),
            other => other,
        }
    }

    /// Attributes from a status and the dirty data of a file.
    pub(super) fn attr(&self, key: Key, node: NodeId, status: &Status) -> Attr {
        let mut attr = Attr {
            node,
            fid: key.fid,
            kind: kind_of(status),
            size: status.length,
            data_bytes: status.length,
            mode: status.mode,
            nlink: status.link_count,
            owner: status.owner,
            is_home: key.cell == CellIndex(0),
            group: status.group,
            mtime: status.client_mod_time,
            ctime: status.server_mod_time,
            data_version: status.data_version,
            is_public: false,
            is_older: false,
        };
        if is_mount_point(status) {
            // Visible only if there is no volume behind it.
            (attr.mode, attr.nlink) = (Mode(0o555), 2);
        }
        if attr.kind == Kind::Symlink {
            attr.mode = SHOWN_LINK_MODE;
        }
        if key.is_volume_root()
            && let Some(made_at) = self.location.volume_of(key).and_then(|volume| volume.made_at())
        {
            attr.mtime = made_at.into();
        }
        let Some(vnode) = self.vnodes.peek(key) else { return attr };
        attr.is_public = self.promises.attributes_are_public(&vnode, status);
        let (data, holes, orphan) = {
            let state = vnode.state();
            attr.ctime = attr.ctime.max(state.decided_at);
            (state.file.data().cloned(), state.file.hole_bytes(status.data_version), state.file.is_orphan())
        };
        if let Some(data) = data {
            let content = data.content();
            if content.is_dirty() {
                data.shown.store(true, std::sync::atomic::Ordering::SeqCst);
                attr.size = content.length;
                attr.mtime = content.changed_at.map_or(attr.mtime, |at| self.as_kept(key, at));
                attr.ctime = attr.ctime.max(attr.mtime);
            }
            if !content.is_dirty() && content.uses.writers() > 0 && content.version != status.data_version {
                // Who opens the file here gets the data of the writer.
                drop(content);
                show_version(&mut attr, &data);
            } else if content.is_dirty() || content.version == status.data_version {
                attr.data_bytes = attr.size.saturating_sub(content.holes.bytes());
            }
        } else if status.kind == FileKind::File && status.length >= HOLE_MIN {
            let bytes = holes.unwrap_or_else(|| self.files.hole_bytes(key, status.data_version));
            attr.data_bytes = attr.size.saturating_sub(bytes);
        }
        if orphan {
            attr.nlink = 0;
        }
        attr
    }

    /// A time as the servers of an object will tell it.
    fn as_kept(&self, key: Key, time: FileTime) -> FileTime {
        let is_fine = self.location.volume_of(key).is_some_and(|volume| volume.has_fine_times());
        if is_fine { time } else { time.whole_seconds() }
    }

    /// Attributes of the synthetic root.
    pub(super) fn cells_attr(&self) -> Attr {
        Attr {
            node: NodeId::ROOT,
            fid: Fid::default(),
            kind: Kind::Directory,
            size: 2048,
            data_bytes: 2048,
            mode: Mode(0o755),
            // The number of directories in it changes without notice: as of other file systems, 1 says that it is not counted.
            nlink: 1,
            owner: ViceId(0),
            is_home: true,
            group: 0,
            mtime: FileTime::default(),
            ctime: FileTime::default(),
            data_version: afs_wire::ids::DataVersion(1),
            is_public: true,
            is_older: false,
        }
    }

    /// access(2): checks the directory's access list and, for files, the owner's mode bits.
    #[boxed]
    pub async fn access(&self, node: NodeId, wanted: Access) -> Result<()> {
        let key = match self.node_target(node)? {
            NodeTarget::Object(key) => key,
            NodeTarget::Unreached(cell, tree) => return Err(self.not_entered(cell, tree).await),
            NodeTarget::Cells | NodeTarget::Snapshots(..) => {
                let refused = wanted.write.then(|| VenusError::new(ErrorKind::ReadOnly, "access"));
                return refused.map_or(Ok(()), Err);
            }
        };
        let me = self.reading_unless(wanted.write);
        let vnode = self.vnode(key);
        let volume = self.volume_of(key).await?;
        let status = me.status(&vnode).await?;
        if wanted.write && !volume.is_writable() {
            return Err(VenusError::new(ErrorKind::ReadOnly, "access").of(key.fid));
        }
        me.require(&vnode, &status, "access", |rights| may(&status, rights, wanted)).await
    }
}

/// Replaces what belongs to the newest version by what belongs to an older one that is open.
pub(super) fn show_version(attr: &mut Attr, data: &FileData) {
    if let Some(status) = data.last_status() {
        (attr.mtime, attr.ctime) = (status.client_mod_time, status.server_mod_time);
    }
    let content = data.content();
    attr.size = content.length;
    attr.data_bytes = content.length.saturating_sub(content.holes.bytes());
    attr.data_version = content.version;
    attr.is_older = true;
}
