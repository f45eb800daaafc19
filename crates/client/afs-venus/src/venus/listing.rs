//! Listing of directories.

use afs_rpc::boxed;
use std::sync::Arc;

use afs_wire::dir::Blob;
use afs_wire::fs;

use crate::api::{DirEntry, DirEntryPlus, Kind, NodeId, OpenedDir};
use crate::error::Result;
use crate::key::{Key, NodeTarget};
use crate::location::Volume;
use crate::names::{is_dot, list_cells};
use crate::venus::Venus;
use crate::vnode::{Vnode, is_mount_point, kind_of};

impl Venus {
    /// opendir(3): checks the right, and determines whether the kernel may cache a listing, and whether the cached one
    /// is valid.
    #[boxed]
    pub async fn opendir(&self, node: NodeId) -> Result<OpenedDir> {
        let key = match self.node_target(node)? {
            NodeTarget::Object(key) => key,
            NodeTarget::Snapshots(cell, volume) => {
                self.visible_snapshots(cell, volume).await?;
                return Ok(OpenedDir { caches: false, keep_cache: false });
            }
            NodeTarget::Unreached(cell, tree) => return Err(self.not_entered(cell, tree).await),
            // Cells are added while the mount runs.
            NodeTarget::Cells => return Ok(OpenedDir { caches: false, keep_cache: false }),
        };
        let vnode = self.vnode(key);
        if let Err(error) = self.with_directory(&vnode, |_| ()).await {
            self.reading().with_old_directory(&vnode, error, |_| ()).await?;
        }
        let mut state = vnode.state();
        let Some(status) = state.status else { return Ok(OpenedDir { caches: false, keep_cache: false }) };
        Ok(state.listing.open(status.data_version))
    }

    /// Closes a directory that was opened with [`OpenedDir::caches`].
    pub fn closedir(&self, node: NodeId) {
        if let Ok(NodeTarget::Object(key)) = self.node_target(node)
            && let Some(vnode) = self.vnodes.peek(key)
        {
            vnode.state().listing.close();
        }
    }

    /// Lists at most `max` names from `offset` (0 at first, then [`DirEntry::next_offset`]). Empty at the end.
    #[boxed]
    pub async fn readdir(&self, node: NodeId, offset: u64, max: usize) -> Result<Vec<DirEntry>> {
        let key = match self.node_target(node)? {
            NodeTarget::Object(key) => key,
            node_target => return self.list_synthetic(node, node_target, offset, max).await,
        };
        let listed = self.reading().list(node, key, offset, max).await?;
        Ok(listed.into_iter().map(|(entry, _)| entry).collect())
    }

    /// As [`Venus::readdir`], with the attributes of the objects, fetched in bulk. Each `found` counts as one look-up:
    /// the caller must forget those that it does not pass on.
    #[boxed]
    pub async fn readdirplus(&self, node: NodeId, offset: u64, max: usize) -> Result<Vec<DirEntryPlus>> {
        let key = match self.node_target(node)? {
            NodeTarget::Object(key) => key,
            node_target => {
                let plain = self.list_synthetic(node, node_target, offset, max).await?;
                return Ok(plain.into_iter().map(|entry| DirEntryPlus { entry, found: None }).collect());
            }
        };
        let listed = self.reading().list(node, key, offset, max).await?;
        let volume = self.volume_of(key).await?;
        let missing = listed.iter().filter(|(entry, _)| !is_dot(&entry.name)).map(|(_, key)| *key);
        let missing: Vec<Key> = missing.filter(|key| !self.is_fresh(*key, &volume)).collect();
        for keys in missing.chunks(fs::FIDS_MAX) {
            // Objects without a status are listed without attributes.
            if self.bulk_status_in(&volume, keys, Some(key)).await.is_err() {
                break;
            }
        }
        let dir = self.vnode(key);
        Ok(listed.into_iter().map(|(entry, key)| self.with_found(node, &dir, entry, key, &volume)).collect())
    }

    fn with_found(
        &self,
        dir: NodeId,
        parent: &Arc<Vnode>,
        mut entry: DirEntry,
        key: Key,
        volume: &Arc<Volume>,
    ) -> DirEntryPlus {
        let seen = |vnode: Arc<Vnode>| {
            let status = vnode.fresh_status(volume, self.now())?;
            self.is_known_visible(parent, volume, &vnode, &status).then_some(status)
        };
        let status = self.vnodes.peek(key).and_then(seen);
        let Some(status) = status.filter(|_| !is_dot(&entry.name)) else {
            return DirEntryPlus { entry, found: None };
        };
        entry.kind = Some(kind_of(&status));
        let found = (!is_mount_point(&status))
            .then(|| self.entry(NodeTarget::Object(key), status, Some((dir, &entry.name))));
        DirEntryPlus { entry, found }
    }

    /// Names and objects from an offset.
    async fn list(&self, node: NodeId, key: Key, offset: u64, max: usize) -> Result<Vec<(DirEntry, Key)>> {
        let vnode = self.vnode(key);
        let Ok(offset) = u32::try_from(offset) else { return Ok(Vec::new()) };
        let entries = |blob: &Blob| -> Vec<(u64, Vec<u8>, Key)> {
            let entries = blob.entries(offset).take(max);
            entries
                .map(|entry| {
                    (u64::from(entry.next), entry.name.to_vec(), key.sibling(entry.vnode, entry.unique))
                })
                .collect()
        };
        let raw = match self.with_directory(&vnode, &entries).await {
            Err(error) => self.with_old_directory(&vnode, error, &entries).await?,
            Ok(raw) => raw,
        };
        let dot_dot = self.dot_dot_node(node, &vnode).await;
        Ok(raw
            .into_iter()
            .map(|(next, name, child)| (self.listed(node, dot_dot, next, name, child), child))
            .collect())
    }

    /// The node of `..`, without a call to a server.
    async fn dot_dot_node(&self, node: NodeId, vnode: &Arc<Vnode>) -> NodeId {
        if node == NodeId::ROOT {
            return NodeId::ROOT;
        }
        if vnode.key.is_volume_root() {
            let entered = self.volume_of(vnode.key).await.ok().and_then(|volume| volume.entered());
            return entered.map_or(NodeId::ROOT, |entered| entered.parent);
        }
        match self.find(vnode, b"..").await {
            Ok(Some(parent)) => self.kernel.nodes().id(NodeTarget::Object(parent)),
            _ => node,
        }
    }

    fn listed(&self, node: NodeId, dot_dot: NodeId, next_offset: u64, name: Vec<u8>, child: Key) -> DirEntry {
        let (ino, kind) = match name.as_slice() {
            b"." => (node, Some(Kind::Directory)),
            b".." => (dot_dot, Some(Kind::Directory)),
            _ => (self.kernel.nodes().id(NodeTarget::Object(child)), self.known_kind(child)),
        };
        DirEntry { next_offset, name, ino, kind }
    }

    /// Type of an object, if known by its number or its cached status. It never changes.
    fn known_kind(&self, key: Key) -> Option<Kind> {
        if key.fid.is_directory() {
            return Some(Kind::Directory);
        }
        let status = self.vnodes.peek(key)?.state().status?;
        Some(kind_of(&status))
    }

    async fn list_synthetic(
        &self,
        node: NodeId,
        node_target: NodeTarget,
        offset: u64,
        max: usize,
    ) -> Result<Vec<DirEntry>> {
        match node_target {
            NodeTarget::Snapshots(cell, volume) => {
                self.list_snapshots(node, (cell, volume), offset, max).await
            }
            NodeTarget::Unreached(cell, tree) => Err(self.not_entered(cell, tree).await),
            NodeTarget::Cells | NodeTarget::Object(_) => Ok(list_cells(&self.location, offset, max)),
        }
    }
}
