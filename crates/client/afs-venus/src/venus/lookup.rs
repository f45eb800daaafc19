//! Look-up of names and paths: within a directory, across mount points, along symbolic links.

use afs_rpc::boxed;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::fs::{FileKind, Status};
use afs_wire::ids::VolumeId;
use afs_wire::mountpoint::{Choice, MountPoint, MountTarget};
use afs_wire::volname;
use bytes::Bytes;

use crate::api::{Entry, Kind, NodeId};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{CellIndex, Key, NodeTarget};
use crate::location::{Entered, Volume};
use crate::names::{NAME_MAX, components, is_dot};
use crate::venus::Venus;
use crate::venus::directory::has_changed;
use crate::venus::looks::Looks;
use crate::vnode::{Vnode, is_mount_point, kind_of};

/// Limit of links followed in one walk.
const LINKS_MAX: u32 = 40;
/// Longest text of a link that is read; a text that fills it may be longer, and is no path.
const LINK_MAX: u64 = 4096;
/// ESTALE: the kernel looks the path up again.
pub(super) const LOOK_AGAIN: i32 = 116;

impl Venus {
    /// Looks up a name. Crosses mount points, follows `.` and `..` (also out of a volume), replaces `@sys`. The entry
    /// counts as one look-up of the node, see [`Venus::forget`].
    #[boxed]
    pub async fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Entry> {
        if name.len() > NAME_MAX {
            return Err(VenusError::new(ErrorKind::NameTooLong, "lookup"));
        }
        let (node_target, status) = self.reading().step(parent, name).await?;
        let named = !is_dot(name);
        let entry = self.entry(node_target, status, named.then_some((parent, name)));
        let stays = match node_target {
            NodeTarget::Object(_) => is_mount_point(&status),
            NodeTarget::Unreached(..) => named,
            NodeTarget::Cells | NodeTarget::Snapshots(..) => false,
        };
        if stays {
            self.invalidate_empty_mount_point(parent, name);
        }
        Ok(entry)
    }

    /// The node that was handed out last for a name in a directory, without looking it up.
    pub fn node_handed_out(&self, parent: NodeId, name: &[u8]) -> Option<NodeId> {
        self.kernel.nodes().child_node(parent, name)
    }

    /// True if a node that was handed out is a directory.
    pub fn is_directory(&self, node: NodeId) -> bool {
        match self.kernel.nodes().node_target(node) {
            Some(NodeTarget::Object(key)) => key.fid.is_directory(),
            Some(NodeTarget::Cells | NodeTarget::Snapshots(..) | NodeTarget::Unreached(..)) => true,
            None => false,
        }
    }

    /// Invalidates the entry of a mount point without a volume, or of a cell that was not entered, so that it is looked up each time: no
    /// server reports when the volume is created.
    pub(super) fn invalidate_empty_mount_point(&self, parent: NodeId, name: &[u8]) {
        self.kernel.invalidate_entry(parent, name);
    }

    /// Follows a path from the root of the mount: components, symbolic links (the last one only if `follow`), `..`. A
    /// leading `/` is the root of the mount. Counts as one look-up.
    #[boxed]
    pub async fn walk(&self, path: &[u8], follow: bool) -> Result<Entry> {
        self.walk_through(path, follow, &mut |_, _| {}).await
    }

    /// The same; each directory on the way is told, with the name that is looked up in it.
    pub(super) async fn walk_through(
        &self,
        path: &[u8],
        follow: bool,
        through: &mut (dyn FnMut(NodeId, &[u8]) + Send),
    ) -> Result<Entry> {
        let mut at = self.lookup(NodeId::ROOT, b".").await?;
        let mut rest: Vec<Vec<u8>> = components(path);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            through(at.node, &name);
            let next = self.lookup_across(at.node, &name).await;
            let from = at.node;
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    self.forget(from, 1);
                    return Err(error);
                }
            };
            if next.attr.kind == Kind::Symlink && (follow || !rest.is_empty()) {
                links += 1;
                let text = if links > LINKS_MAX { Err(too_many()) } else { self.readlink(next.node).await };
                self.forget(next.node, 1);
                let text = match text {
                    Ok(text) => text,
                    Err(error) => {
                        self.forget(from, 1);
                        return Err(error);
                    }
                };
                if text.first() == Some(&b'/') {
                    self.forget(from, 1);
                    at = self.lookup(NodeId::ROOT, b".").await?;
                }
                rest.extend(components(&text));
                continue;
            }
            self.forget(from, 1);
            at = next;
        }
        Ok(at)
    }

    /// [`Venus::lookup`] for a caller that cannot look up again: waits for the servers of the volume behind a mount point.
    async fn lookup_across(&self, parent: NodeId, name: &[u8]) -> Result<Entry> {
        let entry = self.lookup(parent, name).await?;
        let error = match self.kernel.nodes().node_target(entry.node) {
            Some(NodeTarget::Unreached(cell, tree)) => self.not_entered(cell, tree).await,
            Some(NodeTarget::Object(key)) => {
                let vnode = self.vnode(key);
                if !vnode.state().status.as_ref().is_some_and(is_mount_point) {
                    return Ok(entry);
                }
                self.not_crossed(&vnode).await
            }
            _ => return Ok(entry),
        };
        if error.kind == ErrorKind::NoVolume {
            return Ok(entry);
        }
        self.forget(entry.node, 1);
        match error.kind {
            ErrorKind::Refused(LOOK_AGAIN) => self.lookup(parent, name).await,
            _ => Err(error),
        }
    }

    /// The text of a symbolic link.
    #[boxed]
    pub async fn readlink(&self, node: NodeId) -> Result<Bytes> {
        let me = self.reading();
        let vnode = self.vnode(self.key(node, "readlink")?);
        let status = me.status(&vnode).await?;
        if status.kind != FileKind::Symlink {
            return Err(VenusError::new(ErrorKind::Invalid, "readlink").of(vnode.key.fid));
        }
        let text = me.link_text(&vnode).await?;
        match text.is_empty() || text.len() as u64 >= LINK_MAX || text.contains(&0) {
            // The kernel would take a part of it for the whole.
            true => Err(VenusError::new(ErrorKind::Protocol, "readlink").of(vnode.key.fid)),
            false => Ok(text),
        }
    }

    /// Makes an entry to be handed out, counted as a look-up.
    pub(super) fn entry(
        &self,
        node_target: NodeTarget,
        status: Status,
        name: Option<(NodeId, &[u8])>,
    ) -> Entry {
        let (node, lost) = self.kernel.nodes().hand_out(node_target, name);
        if let Some((parent, name)) = lost {
            self.kernel.invalidate_entry(parent, &name);
        }
        self.promises.invalidate_if_unpromised(node_target);
        if let Some(parent) = name.and_then(|(parent, _)| self.kernel.nodes().node_target(parent)) {
            self.promises.invalidate_if_unpromised(parent);
        }
        let (attr, generation) = match node_target {
            NodeTarget::Object(key) => (self.attr(key, node, &status), u64::from(key.fid.unique.0)),
            NodeTarget::Snapshots(cell, volume) => (self.snapshots_attr(node, cell, volume), 0),
            NodeTarget::Cells => (self.cells_attr(), 0),
            NodeTarget::Unreached(..) => (self.unreached_attr(node), 0),
        };
        Entry { node, attr, generation, name_for: self.term_of_name(node_target, name.is_some()) }
    }

    /// How long a name may be kept that leads to a node: without limit, unless it leads to the root of a volume, by the volume's name.
    fn term_of_name(&self, node_target: NodeTarget, named: bool) -> Option<Duration> {
        let NodeTarget::Object(key) = node_target else { return None };
        let volume = self.location.volume_of(key).filter(|_| named && key.is_volume_root())?;
        Some((volume.named_at()? + self.limits.name_max_age).saturating_since(self.now()))
    }

    /// One step from a directory: the target after crossing mount points, and its status.
    pub(super) async fn step(&self, parent: NodeId, name: &[u8]) -> Result<(NodeTarget, Status)> {
        match (self.node_target(parent)?, name) {
            (NodeTarget::Cells, b"." | b"..") | (NodeTarget::Unreached(..), b"..") => {
                Ok((NodeTarget::Cells, Status::default()))
            }
            (at @ NodeTarget::Unreached(..), b".") => Ok((at, Status::default())),
            (NodeTarget::Unreached(cell, tree), _) => Err(self.not_entered(cell, tree).await),
            (NodeTarget::Cells, _) => self.step_into_cell(name).await,
            (NodeTarget::Snapshots(cell, volume), name) => {
                self.step_into_snapshot(parent, cell, volume, name).await
            }
            (NodeTarget::Object(key), b".") => {
                let status = self.status(&self.vnode(key)).await?;
                require_directory(key, &status)?;
                Ok((NodeTarget::Object(key), status))
            }
            (NodeTarget::Object(key), b"..") => self.step_up(parent, key).await,
            (NodeTarget::Object(key), _) => {
                let vnode = self.vnode(key);
                match self.child(&vnode, name).await {
                    Ok((child, status)) => self.cross_or_stay(parent, child, status).await,
                    Err(error)
                        if error.kind == ErrorKind::NotFound && self.names.is_snapshots_name(key, name) =>
                    {
                        self.step_to_snapshots(key, error).await
                    }
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// The parent of a directory. Of a volume's root it is the directory of the mount point through which it was
    /// entered.
    async fn step_up(&self, node: NodeId, key: Key) -> Result<(NodeTarget, Status)> {
        if node == NodeId::ROOT {
            return self.status_at(self.node_target(node)?).await;
        }
        if key.is_volume_root() {
            let entered = self.volume_of(key).await?.entered();
            let above = entered
                .map(|entered| entered.parent)
                .filter(|above| self.kernel.nodes().node_target(*above).is_some());
            return self.status_at(self.node_target(above.unwrap_or(NodeId::ROOT))?).await;
        }
        let vnode = self.vnode(key);
        let parent = self
            .find(&vnode, b"..")
            .await?
            .ok_or(VenusError::new(ErrorKind::Protocol, "lookup").of(key.fid))?;
        self.status_at(NodeTarget::Object(parent)).await
    }

    pub(super) async fn status_at(&self, node_target: NodeTarget) -> Result<(NodeTarget, Status)> {
        match node_target {
            NodeTarget::Cells | NodeTarget::Snapshots(..) | NodeTarget::Unreached(..) => {
                Ok((node_target, Status::default()))
            }
            NodeTarget::Object(key) => Ok((node_target, self.status(&self.vnode(key)).await?)),
        }
    }

    /// The object of a name in a directory; mount points are not crossed. If the object was just removed, the directory
    /// is fetched again and the name looked up anew.
    pub(super) async fn child(&self, dir: &Arc<Vnode>, name: &[u8]) -> Result<(Arc<Vnode>, Status)> {
        let mut looks = Looks::default();
        loop {
            match self.child_of_copy(dir, name).await {
                // A directory that was removed itself is asked for once: servers delay the replies to a client of which many calls fail.
                Err(error) if !dir.state().is_gone && looks.again(&error) => {
                    self.distrust(dir);
                    self.invalidate(dir.key);
                }
                other => return other,
            }
        }
    }

    /// The same by the local copy of the directory.
    async fn child_of_copy(&self, dir: &Arc<Vnode>, name: &[u8]) -> Result<(Arc<Vnode>, Status)> {
        let key = self.find_sys(dir, name).await?;
        let key = key.ok_or(VenusError::new(ErrorKind::NotFound, "lookup").of(dir.key.fid))?;
        let child = self.vnode(key);
        self.found_in(&child, dir.key);
        let volume = self.volume_of(key).await?;
        let status = match child.fresh_status(&volume, self.now()) {
            Some(status) => status,
            None => self.missing_status_in(dir, &child, &volume, name).await?,
        };
        Ok((child, status))
    }

    /// The status of an object in a directory, by a call: apart from it, its future takes no room in those of look-ups that need none.
    #[boxed]
    async fn missing_status_in(
        &self,
        dir: &Arc<Vnode>,
        child: &Arc<Vnode>,
        volume: &Arc<Volume>,
        name: &[u8],
    ) -> Result<Status> {
        // A suspect object is asked for with others like it, which need not be its neighbours.
        if self.suspects_near(child, volume).is_empty() && !has_changed(child) {
            match self.fetch_neighbours(dir, volume, name).await {
                // Whether it may be shown without its server is decided below.
                Err(error) if !self.context.may_be_old => return Err(error),
                _ => {}
            }
        }
        let status = self.status(child).await?;
        self.found_in(child, dir.key);
        Ok(status)
    }

    /// Takes note of the directory in which an object was found: its rights are those of that one.
    pub(super) fn found_in(&self, child: &Vnode, dir: Key) {
        if child.is_found_in(dir) {
            self.pins.doubt(child.key);
        }
    }

    /// Looks up a name; one that ends in `@sys` with every value in its place.
    async fn find_sys(&self, dir: &Arc<Vnode>, name: &[u8]) -> Result<Option<Key>> {
        if !name.ends_with(b"@sys") {
            return self.find(dir, name).await;
        }
        for name in self.names.candidates(name) {
            let found = self.find(dir, &name).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    pub(super) fn is_fresh(&self, key: Key, volume: &Volume) -> bool {
        self.vnodes.peek(key).is_some_and(|vnode| vnode.fresh_status(volume, self.now()).is_some())
    }

    /// As [`Venus::cross`], but a mount point whose volume does not exist, or whose servers do not reply, leads to itself: it
    /// appears as a directory, in which every operation first crosses it, see [`Venus::not_crossed`]. So a directory is
    /// listed with its attributes although servers of others are away. Nobody waits for such a server here.
    pub(super) async fn cross_or_stay(
        &self,
        parent: NodeId,
        child: Arc<Vnode>,
        status: Status,
    ) -> Result<(NodeTarget, Status)> {
        let key = child.key;
        match self.glancing().cross(parent, child.clone(), status).await {
            Err(error) if is_mount_point(&status) => {
                let text = child.state().link.clone().unwrap_or_default();
                let text = String::from_utf8_lossy(&text);
                match error.kind {
                    ErrorKind::NoVolume => {
                        tracing::warn!(fid = %key.fid, mount_point = %text, %error, "a mount point names no volume");
                    }
                    ErrorKind::ServerUnreachable => {
                        tracing::debug!(fid = %key.fid, mount_point = %text, %error, "a mount point is not crossed");
                    }
                    _ => return Err(error),
                }
                Ok((NodeTarget::Object(key), status))
            }
            other => other,
        }
    }

    /// The error of an operation in a mount point that was not crossed. The operation waits for the servers of its volume as any
    /// other does; when they have replied it is to be repeated in the volume's root, to which the kernel comes by looking
    /// the path up again (ESTALE).
    pub(super) async fn not_crossed(&self, mount_point: &Arc<Vnode>) -> VenusError {
        let key = mount_point.key;
        match self.behind(mount_point).await {
            Ok(_) => {
                self.invalidate(key);
                VenusError::new(ErrorKind::Refused(LOOK_AGAIN), "mount point").of(key.fid)
            }
            Err(error) => error,
        }
    }

    /// Crosses a mount point into the root of its volume; any other object is returned unchanged.
    pub(super) async fn cross(
        &self,
        parent: NodeId,
        child: Arc<Vnode>,
        status: Status,
    ) -> Result<(NodeTarget, Status)> {
        if !is_mount_point(&status) {
            return Ok((NodeTarget::Object(child.key), status));
        }
        let (volume, text, root) = self.behind(&child).await?;
        volume.enter(Entered { parent, text: String::from_utf8_lossy(&text).into_owned() });
        Ok(root)
    }

    /// The volume of a mount point, the text of the mount point, and the root with its status.
    async fn behind(&self, child: &Arc<Vnode>) -> Result<(Arc<Volume>, Bytes, (NodeTarget, Status))> {
        let text = self.link_text(child).await?;
        let mount = MountPoint::parse(&text).map_err(|error| {
            tracing::warn!(fid = %child.key.fid, %error, "a mount point cannot be read");
            VenusError::new(ErrorKind::NoVolume, "mount point").of(child.key.fid)
        })?;
        let container = self.volume_of(child.key).await?;
        let cell = match &mount.cell {
            None => child.key.cell,
            Some(name) => self.cell_named(name.as_str()).await?,
        };
        let choice = mount.choice(container.kind, cell == child.key.cell);
        let volume = self.mounted_volume(cell, &mount.target, choice).await?;
        let root = self.root_of(&volume, &mount.target).await?;
        Ok((volume, text, root))
    }

    async fn root_of(&self, volume: &Volume, target: &MountTarget) -> Result<(NodeTarget, Status)> {
        let mut fid = afs_wire::ids::Fid::root(volume.id);
        if let MountTarget::Object(_, vnode, unique) = target {
            fid = afs_wire::ids::Fid { vnode: *vnode, unique: *unique, ..fid };
        }
        self.status_at(NodeTarget::Object(Key::new(volume.cell, fid))).await
    }

    /// The volume of a mount point's text.
    async fn mounted_volume(
        &self,
        cell: CellIndex,
        target: &MountTarget,
        choice: Choice,
    ) -> Result<Arc<Volume>> {
        let (name, number) = match target {
            MountTarget::Name(name) => (volname::split(name.as_str()).0.to_owned(), None),
            MountTarget::Id(id) | MountTarget::Object(id, ..) => (id.0.to_string(), Some(*id)),
        };
        self.chosen_volume(cell, &name, choice, number).await
    }

    pub(super) async fn chosen_volume(
        &self,
        cell: CellIndex,
        name: &str,
        choice: Choice,
        number: Option<VolumeId>,
    ) -> Result<Arc<Volume>> {
        let known = self.group(cell, name).await?;
        let (group, chosen) = match known.choose(choice, number) {
            Some(chosen) => (known, Some(chosen)),
            // The cached group may be older than the first release or the first backup volume.
            None => {
                let group = self.group_anew(cell, name).await?;
                let chosen = group.choose(choice, number);
                (group, chosen)
            }
        };
        let (id, kind) = chosen.ok_or(VenusError::new(ErrorKind::NoVolume, "mount point"))?;
        let volume = self.learn_volume(cell, &group, id, kind).await?;
        if number.is_none() {
            let asked = self.location.volumes().group(cell, name).map(|(_, asked)| asked);
            // One that was recalled meanwhile is asked for at the next look-up.
            volume.found_by_name(asked.unwrap_or(Instant::ZERO));
        }
        Ok(volume)
    }

    /// The text of a link or mount point, which never changes.
    pub(super) async fn link_text(&self, vnode: &Arc<Vnode>) -> Result<Bytes> {
        if let Some(text) = vnode.state().link.clone() {
            return Ok(text);
        }
        let _guard = vnode.fetching.lock().await;
        if let Some(text) = vnode.state().link.clone() {
            return Ok(text);
        }
        let volume = self.volume_of(vnode.key).await?;
        let fetched = self.fetch_small(&volume, vnode.key.fid, LINK_MAX).await;
        let answered = fetched.map_err(|error| self.handle_error(vnode, error))?;
        let (text, reply) = &answered.value;
        self.promises.record_reply(
            &volume,
            vnode,
            &reply.status,
            &reply.callback,
            &reply.sync,
            &answered.origin(),
        );
        let text = Bytes::from(text.clone());
        vnode.state().link = Some(text.clone());
        Ok(text)
    }
}

/// An error if an object is not a directory.
fn require_directory(key: Key, status: &Status) -> Result<()> {
    match kind_of(status) {
        Kind::Directory => Ok(()),
        _ => Err(VenusError::new(ErrorKind::NotDirectory, "lookup").of(key.fid)),
    }
}

fn too_many() -> VenusError {
    VenusError::new(ErrorKind::Loop, "walk")
}
