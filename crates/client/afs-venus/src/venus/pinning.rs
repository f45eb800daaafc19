//! Pins, by the order of users: made, ended and told. They are kept by [`crate::venus::pin_keeping`].

use afs_rpc::boxed;
use std::collections::BTreeSet;
use std::sync::Arc;

use afs_wire::fs::FileKind;
use afs_wire::ids::{DataVersion, Fid};

use crate::api::{Access, ExplainedFid, NodeId, PinOptions, PinState, Pinned, TokenOwner, Unpinned};
use crate::cache::PinRecord;
use crate::error::Result as VenusResult;
use crate::key::{CellIndex, Key, NodeTarget};
use crate::pins::{Pin, Told};
use crate::venus::Venus;
use crate::vnode::may;

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
        let owner = self.identity.known_owner(owner);
        let (root, way) = self.as_user(Some(owner)).target_of_pin(path).await?;
        let pin = Pin { root, owner: Some(owner), is_recursive, is_offline, path: path.to_vec() };
        let number = self.pins.add(pin)?;
        self.mark_pinned(root, true);
        if let Err(error) = self.keep_list_of_pins().await {
            self.end_pin(number);
            return Err(Unpinned::Failed(error));
        }
        self.set_way(number, way);
        tracing::info!(fid = %root.fid, "pinned by the order of {owner}");
        Ok(number)
    }

    async fn target_of_pin(&self, path: &[u8]) -> Result<(Key, Vec<Key>), Unpinned> {
        let (target, way) = self.way_to(path).await.map_err(Unpinned::Failed)?;
        let NodeTarget::Object(key) = target else {
            return Err(Unpinned::OnNoServer);
        };
        let vnode = self.vnode(key);
        let status = self.status(&vnode).await.map_err(Unpinned::Failed)?;
        if status.kind != FileKind::File {
            return Ok((key, way));
        }
        let wanted = Access { read: true, ..Access::default() };
        let readable = self.require(&vnode, &status, "pin", |rights| may(&status, rights, wanted)).await;
        readable.map_err(Unpinned::Failed)?;
        match status.length <= self.pins.bytes_max() {
            true => Ok((key, way)),
            false => Err(Unpinned::TooLarge(status.length, self.pins.bytes_max())),
        }
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

    /// Takes note of the way to a pin.
    pub(super) fn set_way(&self, number: u64, way: Vec<Key>) {
        self.pins.set_way(number, way).into_iter().for_each(|key| self.mark_pinned(key, true));
    }

    /// Ends the pins of a path that this user has made, or for root that any user has; what they kept may be evicted from now on.
    ///
    /// # Errors
    /// There is none, or the list cannot be written: the pin holds again after a restart.
    #[boxed]
    pub async fn unpin(&self, owner: TokenOwner, path: &[u8]) -> Result<(), Unpinned> {
        let path = trimmed(path);
        let mut found = self.pins_known_to(owner);
        found.retain(|told| told.pin.path == path);
        if found.is_empty() {
            return Err(Unpinned::None);
        }
        for Told { number, pin, .. } in &found {
            self.end_pin(*number);
            if pin.is_offline {
                self.sweep_offline(pin, &BTreeSet::new()).await.map_err(Unpinned::Failed)?;
            }
        }
        self.keep_list_of_pins().await.map_err(Unpinned::Failed)
    }

    /// The pins of this user, or for root those of all. In the order of their numbers, from the first one above `after`; at most
    /// 16, empty at the end. Makes no calls.
    pub fn pins(&self, owner: TokenOwner, after: u64) -> Vec<Pinned> {
        let mut told: Vec<Pinned> = Vec::new();
        let mut paths = 0;
        for it in self.pins_known_to(owner).into_iter().filter(|it| it.number > after) {
            paths += it.pin.path.len();
            if told.len() >= LIST_MAX || (paths > LIST_PATHS_MAX && !told.is_empty()) {
                break;
            }
            told.push(self.pin_told(it));
        }
        told
    }

    fn pins_known_to(&self, owner: TokenOwner) -> Vec<Told> {
        let mut all = self.pins.all();
        let is_own = |told: &Told| told.pin.owner.is_some_and(|user| user.uid() == owner.uid());
        all.retain(|told| owner.uid() == 0 || is_own(told));
        all
    }

    fn pin_told(&self, it: Told) -> Pinned {
        let Told { number, pin, sums, is_due, waits, reason } = it;
        let state = match (is_due, &waits, sums.missing_objects) {
            (_, Some(_), _) => PinState::Waiting,
            (false, None, 0) => PinState::Complete,
            (false, None, _) if reason.is_some() => PinState::Partial,
            _ => PinState::Fetching,
        };
        let Fid { volume, vnode, unique } = pin.root.fid;
        Pinned {
            number,
            path: String::from_utf8_lossy(&pin.path).into_owned(),
            cell: self.cell_name(pin.root.cell),
            fid: ExplainedFid { volume: volume.0, vnode: vnode.0, unique: unique.0 },
            uid: pin.owner.map(TokenOwner::uid),
            is_recursive: pin.is_recursive,
            is_offline: pin.is_offline,
            unpromised: self.unpromised(pin.root),
            state,
            objects: sums.objects,
            missing_objects: sums.missing_objects,
            bytes: sums.bytes,
            missing_bytes: sums.missing_bytes,
            reason: waits.or(reason),
        }
    }

    fn cell_name(&self, cell: CellIndex) -> String {
        self.location.cell(cell).map_or(String::new(), |cell| cell.name.to_string())
    }

    fn end_pin(&self, number: u64) {
        self.pins.remove(number).into_iter().for_each(|key| self.mark_pinned(key, false));
    }

    /// Marks an object as pinned or not, in the status cache and in the cache of files.
    pub(super) fn mark_pinned(&self, key: Key, is_pinned: bool) {
        if is_pinned {
            self.vnode(key).state().is_pinned = true;
        } else if let Some(vnode) = self.vnodes.peek(key) {
            vnode.state().is_pinned = false;
        }
        self.files.set_pinned(key, is_pinned);
    }

    /// Writes the list of the pins to the cache.
    async fn keep_list_of_pins(&self) -> VenusResult<()> {
        let known = self.pins.all().into_iter().filter_map(|told| {
            let Pin { root, owner, is_recursive, is_offline, path } = told.pin;
            let cell = self.location.cell(root.cell)?.name.clone();
            Some(PinRecord { cell, fid: root.fid, owner, is_recursive, is_offline, path })
        });
        let list: Vec<PinRecord> = known.chain(self.pins.foreign()).collect();
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
        for record in list {
            match self.location.cell_named(record.cell.as_str()) {
                Some(cell) => self.restored(pin_of(cell, &record), |pin| self.pins.add(pin)),
                None => self.pins.add_foreign(record),
            }
        }
    }

    /// Takes up those in cells that have to be looked up.
    pub(super) async fn find_cells_of_pins(&self) {
        let mut any_offline = false;
        for record in self.pins.foreign() {
            let Some(cell) = self.cells.find(record.cell.as_str()).await else { continue };
            any_offline |= record.is_offline;
            self.restored(pin_of(cell, &record), |pin| self.pins.adopt(&record, pin));
        }
        if any_offline {
            self.restore_offline().await;
        }
    }

    fn restored(&self, pin: Pin, add: impl FnOnce(Pin) -> Result<u64, Unpinned>) {
        let root = pin.root;
        // Not one that was made since the start.
        if add(pin).is_ok() {
            self.mark_pinned(root, true);
        }
    }

    /// True if the cache is known to have all of a version of a file.
    pub(super) fn is_kept_whole(&self, key: Key, version: DataVersion, length: u64) -> bool {
        self.files.kept_bytes(key, version).is_some_and(|bytes| bytes == length)
    }
}

fn pin_of(cell: CellIndex, record: &PinRecord) -> Pin {
    let PinRecord { fid, owner, is_recursive, is_offline, path, .. } = record.clone();
    Pin { root: Key::new(cell, fid), owner, is_recursive, is_offline, path }
}

/// A path without slashes around it.
fn trimmed(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|b| *b != b'/').unwrap_or(path.len());
    let end = path.iter().rposition(|b| *b != b'/').map_or(start, |last| last + 1);
    &path[start..end]
}
