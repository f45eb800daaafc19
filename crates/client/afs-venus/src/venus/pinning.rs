//! Pins, by the order of users: made, ended and told. They are kept by [`crate::venus::keeping`].

use std::sync::Arc;

use afs_rpc::boxed;
use afs_wire::fs::{FileKind, Status};

use crate::api::{Access, NodeId, PinOptions, Pinned, TokenOwner, Unpinned};
use crate::cache::PinRecord;
use crate::error::Result as VenusResult;
use crate::key::{Key, NodeTarget};
use crate::venus::Venus;
use crate::vnode::{Vnode, may};

/// Limit of a list, in entries and in bytes of paths.
const LIST_MAX: usize = 16;
const LIST_PATHS_MAX: usize = 8 << 10;
/// Longest path, in bytes: the kernel's bound.
const PATH_MAX: usize = 4096;
/// Steps of a path of which the directory is pinned with it; of more, the first ones.
const WAY_MAX: usize = 128;

impl Venus {
    /// Pins what is at a path from the root of the mount, for the user of these tokens: it is fetched in the background, stays in
    /// the cache, and is fetched again when it changes. Holds over restarts of the mount. Returns the pin's number.
    ///
    /// # Errors
    /// See [`Unpinned`]; the path cannot be followed, or the user may not read the file.
    #[boxed]
    pub async fn pin(&self, owner: TokenOwner, path: &[u8], options: PinOptions) -> Result<u64, Unpinned> {
        let PinOptions { is_recursive, is_offline } = options;
        let path = trimmed(path);
        if path.len() > PATH_MAX {
            return Err(Unpinned::TooLong);
        }
        let user = self.identity.known_owner(owner);
        let root = self.as_user(Some(user)).target_of_pin(path).await?;
        let (fid, owner, path) = (root.fid, Some(user), path.to_vec());
        let cell = self.cell(root).map_err(Unpinned::Failed)?.name.clone();
        let pin = PinRecord { cell, fid, owner, is_recursive, is_offline, path };
        let number = self.pins.add(pin, Some(root), false)?;
        self.apply_pins(root);
        if let Err(error) = self.keep_list_of_pins().await {
            self.end_pin(number);
            return Err(Unpinned::Failed(error));
        }
        tracing::info!(fid = %root.fid, "pinned by the order of {user}");
        Ok(number)
    }

    async fn target_of_pin(&self, path: &[u8]) -> Result<Key, Unpinned> {
        let (target, _) = self.way_to(path).await.map_err(Unpinned::Failed)?;
        let NodeTarget::Object(key) = target else {
            return Err(Unpinned::OnNoServer);
        };
        let vnode = self.vnode(key);
        let status = self.status(&vnode).await.map_err(Unpinned::Failed)?;
        if status.kind != FileKind::File {
            return Ok(key);
        }
        self.require_to_read(&vnode, &status, "pin").await.map_err(Unpinned::Failed)?;
        match status.length <= self.pins.bytes_max {
            true => Ok(key),
            false => Err(Unpinned::TooLarge(status.length, self.pins.bytes_max)),
        }
    }

    /// Whether the user may read a file.
    pub(super) async fn require_to_read(
        &self,
        vnode: &Arc<Vnode>,
        status: &Status,
        operation: &'static str,
    ) -> VenusResult<()> {
        let wanted = Access { read: true, ..Access::default() };
        self.require(vnode, status, operation, |rights| may(status, rights, wanted)).await
    }

    /// What is at a path, and the directories and links that the path leads through: without these nothing is found at it while
    /// their server is away.
    pub(super) async fn way_to(&self, path: &[u8]) -> VenusResult<(NodeTarget, Vec<Key>)> {
        let mut steps = Vec::new();
        let mut through = |node: NodeId, name: &[u8]| {
            if steps.len() < WAY_MAX
                && let Ok(NodeTarget::Object(key)) = self.node_target(node)
            {
                steps.push((key, name.to_vec()));
            }
        };
        let entry = self.walk_through(path, true, &mut through).await?;
        let target = self.node_target(entry.node);
        self.forget(entry.node, 1);
        let mut way = Vec::new();
        for (dir, name) in steps {
            way.push(dir);
            // A link, a mount point, or the next directory.
            way.extend(self.find(&self.vnode(dir), &name).await?);
        }
        let target = target?;
        way.retain(|key| NodeTarget::Object(*key) != target);
        Ok((target, way))
    }

    /// Ends the pins of a path that this user has made, or for root that any user has; what they kept may be evicted from now on.
    ///
    /// # Errors
    /// There is none, or the list cannot be written: the pin holds again after a restart.
    #[boxed]
    pub async fn unpin(&self, owner: TokenOwner, path: &[u8]) -> Result<(), Unpinned> {
        let path = trimmed(path);
        let mut found = self.pins.told(owner);
        found.retain(|(pin, ..)| pin.path == path);
        if found.is_empty() {
            return Err(Unpinned::None);
        }
        found.iter().for_each(|(_, _, told)| self.end_pin(told.number));
        if found.iter().any(|(pin, ..)| pin.is_offline) {
            self.sweep_offline().await.map_err(Unpinned::Failed)?;
        }
        self.keep_list_of_pins().await.map_err(Unpinned::Failed)
    }

    /// The pins of this user, or for root those of all. In the order of their numbers, from the first one above `after`; at most
    /// 16, empty at the end. Makes no calls.
    pub fn pins(&self, owner: TokenOwner, after: u64) -> Vec<Pinned> {
        let mut told: Vec<Pinned> = Vec::new();
        let mut paths = 0;
        for (pin, root, mut it) in self.pins.told(owner).into_iter().filter(|(.., it)| it.number > after) {
            paths += pin.path.len();
            if told.len() >= LIST_MAX || (paths > LIST_PATHS_MAX && !told.is_empty()) {
                break;
            }
            it.unpromised = self.unpromised(root);
            told.push(it);
        }
        told
    }

    fn end_pin(&self, number: u64) {
        self.pins.remove(number).into_iter().for_each(|key| self.apply_pins(key));
    }

    /// Writes the list of the pins to the cache.
    async fn keep_list_of_pins(&self) -> VenusResult<()> {
        let list = self.pins.records();
        let store: Arc<_> = self.files.store_of_pins().clone();
        self.files.disk(move || store.keep_pins(&list)).await
    }

    /// Takes up the pins of earlier mounts in the cells that the configuration names: nothing is looked up.
    pub(super) async fn restore_pins(&self) {
        let store: Arc<_> = self.files.store_of_pins().clone();
        let list = match self.files.disk(move || store.pins()).await {
            Ok(list) => list,
            Err(error) => {
                tracing::error!(%error, "the pins of earlier mounts cannot be read");
                return;
            }
        };
        for pin in list {
            let cell = self.location.cell_named(pin.cell.as_str());
            let root = cell.map(|cell| Key::new(cell, pin.fid));
            if self.pins.add(pin, root, true).is_ok() {
                root.into_iter().for_each(|root| self.apply_pins(root));
            }
        }
    }

    /// Takes up those in cells that have to be looked up.
    pub(super) async fn find_cells_of_pins(&self) {
        let mut any_offline = false;
        for (number, pin) in self.pins.without_cell() {
            let Some(cell) = self.cells.find(pin.cell.as_str()).await else { continue };
            any_offline |= pin.is_offline;
            let root = Key::new(cell, pin.fid);
            self.pins.set_root(number, root);
            self.apply_pins(root);
        }
        if any_offline {
            self.restore_offline().await;
        }
    }
}

/// A path without slashes around it.
fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|b| *b != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|b| *b != b'/').map_or(start, |last| last + 1);
    &path[start..end]
}
