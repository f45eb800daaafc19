//! Volumes in use: sites, promises, snapshots, and the mount point by which each was entered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use afs_rpc::Instant;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vol::Snapshot;
use parking_lot::Mutex;

use crate::api::NodeId;
use crate::key::CellIndex;
use crate::location::choice::{self, Candidate};
use crate::location::{Group, Server};
use crate::promise::{Promise, ServerReset};

/// The mount point by which a volume was entered last: it determines `..` of the volume's root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entered {
    /// Directory of the mount point.
    pub parent: NodeId,
    /// Text of the mount point.
    pub text: String,
}

/// A volume.
pub(crate) struct Volume {
    pub cell: CellIndex,
    pub id: VolumeId,
    pub kind: VolumeKind,
    /// Number of the last break of the volume as a whole.
    pub broken: AtomicU64,
    /// Number of the last break of one of its objects that is not in the cache. An object being created is not in the
    /// cache before the reply; its promise is invalid if there was such a break in between.
    pub stray: AtomicU64,
    /// When to query its location again, in nanoseconds, because of a server's notification; 0: never.
    check_location_at: AtomicU64,
    /// Since when objects of it are read without a promise, because no server replies; 0: they are not.
    unpromised_since: AtomicU32,
    state: Mutex<State>,
}

struct State {
    group: Arc<Group>,
    sites: Vec<Arc<Server>>,
    /// The site called last, if there are several.
    chosen: Option<Arc<Server>>,
    located_at: Instant,
    creation: Option<UnixSeconds>,
    /// The promise for all objects of a read-only volume.
    promise: Option<Promise>,
    entered: Option<Entered>,
    /// When the location service was asked for the name by which it was found last.
    named_at: Option<Instant>,
    snapshots: Option<KnownSnapshots>,
    /// Creation time of a snapshot.
    made_at: Option<UnixSeconds>,
}

/// Snapshots of a volume as reported by its server.
#[derive(Clone)]
pub(crate) struct KnownSnapshots {
    /// `None`: the server does not support snapshots.
    pub list: Option<Arc<[Snapshot]>>,
    /// Time of the query.
    pub asked: Instant,
}

impl Volume {
    fn new(
        cell: CellIndex,
        id: VolumeId,
        kind: VolumeKind,
        group: Arc<Group>,
        sites: Vec<Arc<Server>>,
        now: Instant,
    ) -> Self {
        let state = State {
            group,
            sites,
            chosen: None,
            located_at: now,
            creation: None,
            promise: None,
            entered: None,
            named_at: None,
            snapshots: None,
            made_at: None,
        };
        Volume {
            cell,
            id,
            kind,
            broken: AtomicU64::new(0),
            stray: AtomicU64::new(0),
            check_location_at: AtomicU64::new(0),
            unpromised_since: AtomicU32::new(0),
            state: Mutex::new(state),
        }
    }

    pub fn is_writable(&self) -> bool {
        self.kind == VolumeKind::ReadWrite
    }

    /// Its name, as in the location service.
    pub fn name(&self) -> String {
        format!("{}{}", self.group().name, self.kind.suffix())
    }

    pub fn group(&self) -> Arc<Group> {
        self.state.lock().group.clone()
    }

    /// Its sites, best first. The site chosen before comes first as long as it is not clearly worse than the best.
    pub fn sites(&self, now: Instant) -> Vec<Arc<Server>> {
        let mut state = self.state.lock();
        if state.sites.len() < 2 {
            return state.sites.clone();
        }
        let candidate = |server: &Arc<Server>| Candidate {
            rank: server.rank(),
            distance: server.distance(now),
            is_unreachable: server.is_unreachable(),
            // Different for each volume, so that the volumes are spread over the servers.
            draw: server.draw.rotate_left(self.id.0 % 64),
            is_chosen: state.chosen.as_ref().is_some_and(|chosen| Arc::ptr_eq(chosen, server)),
        };
        let candidates: Vec<Candidate> = state.sites.iter().map(candidate).collect();
        let order = choice::order(&candidates);
        let sites: Vec<_> = order.iter().filter_map(|index| state.sites.get(*index).cloned()).collect();
        state.chosen = sites.first().cloned();
        sites
    }

    /// True if all of its servers are unreachable.
    pub fn is_unreachable(&self, now: Instant) -> bool {
        self.sites(now).iter().all(|server| server.is_unreachable())
    }

    /// True if all of its servers keep times of files to the nanosecond.
    pub fn has_fine_times(&self) -> bool {
        self.state.lock().sites.iter().all(|server| server.has_fine_times.load(Ordering::SeqCst))
    }

    /// True if a server is one of its sites.
    pub fn is_at(&self, server: &ServerReset) -> bool {
        self.state.lock().sites.iter().any(|site| site.reset.is_same(server))
    }

    /// Records that the volume may have moved: the next call queries its location first.
    pub fn doubt_location(&self) {
        self.check_location_at.store(1, Ordering::SeqCst);
    }

    /// Claims the query of its location if one is due; the caller must make it. If it fails, the next is due at
    /// `again`.
    pub fn claim_location_check(&self, now: Instant, again: Instant) -> bool {
        let at = self.check_location_at.load(Ordering::SeqCst);
        let due = at != 0 && Instant::from_nanos(at) <= now;
        let again = again.as_nanos().max(1);
        due && self.check_location_at.compare_exchange(at, again, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Records that an object of it is read without a promise. Returns true if that is new.
    pub fn begin_unpromised(&self, now: UnixSeconds) -> bool {
        let now = now.0.max(1);
        self.unpromised_since.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Records a reply of a server. Returns since when objects were read without a promise until now, if they were.
    pub fn end_unpromised(&self) -> Option<UnixSeconds> {
        match self.unpromised_since.load(Ordering::SeqCst) {
            0 => None,
            _ => Some(UnixSeconds(self.unpromised_since.swap(0, Ordering::SeqCst))).filter(|at| at.0 != 0),
        }
    }

    /// Since when objects of it are read without a promise.
    pub fn unpromised_since(&self) -> Option<UnixSeconds> {
        Some(UnixSeconds(self.unpromised_since.load(Ordering::SeqCst))).filter(|at| at.0 != 0)
    }

    pub fn located_at(&self) -> Instant {
        self.state.lock().located_at
    }

    /// Updates the location. Returns true if the sites have changed.
    pub fn relocate(&self, group: Arc<Group>, sites: Vec<Arc<Server>>, now: Instant) -> bool {
        let mut state = self.state.lock();
        let same = state.sites.len() == sites.len()
            && state.sites.iter().zip(&sites).all(|(old, new)| Arc::ptr_eq(old, new));
        state.group = group;
        state.sites = sites;
        state.located_at = now;
        self.check_location_at.store(0, Ordering::SeqCst);
        !same
    }

    /// Records the volume's creation time from a reply. Returns true if it has changed: a new release, or a restore
    /// from a dump (docs/protocol/fileserver.md "2. Structures", AFSVolSync).
    pub fn note_creation(&self, creation: UnixSeconds) -> bool {
        let mut state = self.state.lock();
        let changed = state.creation.is_some_and(|old| old != creation);
        state.creation = Some(creation);
        changed
    }

    pub fn creation(&self) -> Option<UnixSeconds> {
        self.state.lock().creation
    }

    pub fn set_promise(&self, promise: Option<Promise>) {
        self.state.lock().promise = promise;
    }

    /// True if the promise for a read-only volume is by this server.
    pub fn is_promised_by(&self, server: &ServerReset) -> bool {
        self.state.lock().promise.as_ref().is_some_and(|promise| promise.server.is_same(server))
    }

    /// Drops the promise for a read-only volume if its server is not a site any more. Returns true if it was dropped.
    pub fn drop_promise_of_former_site(&self) -> bool {
        let mut state = self.state.lock();
        let State { promise, sites, .. } = &mut *state;
        let is_former = |promise: &mut Promise| !sites.iter().any(|site| site.reset.is_same(&promise.server));
        promise.take_if(is_former).is_some()
    }

    /// True if the promise for a read-only volume is valid.
    pub fn is_promised(&self, now: Instant) -> bool {
        let broken = self.broken.load(Ordering::SeqCst);
        self.state.lock().promise.as_ref().is_some_and(|promise| promise.is_valid(now, broken))
    }

    /// End of that promise; `None` if there is none.
    pub fn promised_until(&self) -> Option<Instant> {
        self.state.lock().promise.as_ref().map(|promise| promise.until)
    }

    /// Known snapshots, if queried after `since`.
    pub fn snapshots(&self, since: Instant) -> Option<KnownSnapshots> {
        self.state.lock().snapshots.clone().filter(|known| known.asked >= since)
    }

    /// Sets the known snapshots; `None` removes them.
    pub fn set_snapshots(&self, known: Option<KnownSnapshots>) {
        self.state.lock().snapshots = known;
    }

    /// Sets the creation time of a snapshot.
    pub fn set_made_at(&self, when: UnixSeconds) {
        self.state.lock().made_at = Some(when);
    }

    /// Creation time of a snapshot.
    pub fn made_at(&self) -> Option<UnixSeconds> {
        self.state.lock().made_at
    }

    pub fn enter(&self, entered: Entered) {
        self.state.lock().entered = Some(entered);
    }

    pub fn entered(&self) -> Option<Entered> {
        self.state.lock().entered.clone()
    }

    /// Records that it was found by a name, for which the location service was asked at `asked`.
    pub fn found_by_name(&self, asked: Instant) {
        self.state.lock().named_at = Some(asked);
    }

    /// When the location service was asked for its name; `None` if it was found by its number alone.
    pub fn named_at(&self) -> Option<Instant> {
        self.state.lock().named_at
    }
}

/// Table of volumes by number, and of groups by name. Of groups the one queried longest ago is removed.
pub(crate) struct VolumeTable {
    /// Volumes beyond which those that nobody uses are removed.
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    volumes: BTreeMap<(CellIndex, VolumeId), Arc<Volume>>,
    groups: BTreeMap<(CellIndex, String), (Arc<Group>, Instant)>,
    /// How often all groups were removed.
    recalls: u64,
    /// Number of volumes at which those that nobody uses are looked for.
    shrinks_at: usize,
}

/// Limit of groups.
const GROUPS_MAX: usize = 4096;
/// Limit of volumes, those in use apart: the break numbers of a volume must not be lost while an object of it is cached.
const VOLUMES_MAX: usize = 16_384;

impl Default for VolumeTable {
    fn default() -> Self {
        Self::with_room(VOLUMES_MAX)
    }
}

impl VolumeTable {
    /// A table of at most so many volumes besides those in use.
    pub fn with_room(max: usize) -> Self {
        VolumeTable { max, inner: Mutex::new(Inner { shrinks_at: max, ..Inner::default() }) }
    }

    /// Removes the volumes that nobody uses, if there are too many: no task has them, and nothing of them `is_in_use`. They are looked up again
    /// when they are needed. The table is then at most twice as large as what is in use.
    pub fn shrink(&self, is_in_use: impl Fn(CellIndex, VolumeId) -> bool) {
        let mut inner = self.inner.lock();
        if inner.volumes.len() > inner.shrinks_at {
            let is_held = |volume: &Arc<Volume>| Arc::strong_count(volume) > 1;
            inner.volumes.retain(|(cell, id), volume| is_held(volume) || is_in_use(*cell, *id));
            inner.shrinks_at = self.max.max(2 * inner.volumes.len());
        }
    }

    pub fn get(&self, cell: CellIndex, id: VolumeId) -> Option<Arc<Volume>> {
        self.inner.lock().volumes.get(&(cell, id)).cloned()
    }

    /// All volumes of this number: a break does not name its cell.
    pub fn with_id(&self, id: VolumeId) -> Vec<Arc<Volume>> {
        self.inner.lock().volumes.values().filter(|volume| volume.id == id).cloned().collect()
    }

    pub fn all(&self) -> Vec<Arc<Volume>> {
        self.inner.lock().volumes.values().cloned().collect()
    }

    /// The volume, added if it is new.
    pub fn learn(
        &self,
        cell: CellIndex,
        id: VolumeId,
        kind: VolumeKind,
        group: Arc<Group>,
        sites: Vec<Arc<Server>>,
        now: Instant,
    ) -> Arc<Volume> {
        let mut inner = self.inner.lock();
        let make = || Arc::new(Volume::new(cell, id, kind, group, sites, now));
        inner.volumes.entry((cell, id)).or_insert_with(make).clone()
    }

    /// The group of a name, and when it was queried.
    pub fn group(&self, cell: CellIndex, name: &str) -> Option<(Arc<Group>, Instant)> {
        self.inner.lock().groups.get(&(cell, name.to_owned())).cloned()
    }

    /// Number of the last recall of all groups, to be taken before a query.
    pub fn recalls(&self) -> u64 {
        self.inner.lock().recalls
    }

    /// The group of a name or number by the volumes that are known, whenever that was queried.
    pub fn group_of_known(&self, cell: CellIndex, name: &str) -> Option<Arc<Group>> {
        let id = name.parse().ok().map(VolumeId);
        let volumes = self.inner.lock().volumes.values().cloned().collect::<Vec<_>>();
        let of_cell = volumes.iter().filter(|volume| volume.cell == cell).map(|volume| volume.group());
        of_cell.into_iter().find(|group| group.name == name || id.is_some_and(|id| group.ids.contains(&id)))
    }

    /// Remembers the reply to a query before which `recalls` was the number of the last recall; not if there was one since.
    pub fn remember_group(&self, cell: CellIndex, name: &str, group: Arc<Group>, now: Instant, recalls: u64) {
        let mut inner = self.inner.lock();
        if inner.recalls != recalls {
            return;
        }
        if inner.groups.len() >= GROUPS_MAX
            && let Some(oldest) =
                inner.groups.iter().min_by_key(|(_, (_, asked))| *asked).map(|(name, _)| name.clone())
        {
            inner.groups.remove(&oldest);
        }
        inner.groups.insert((cell, name.to_owned()), (group, now));
    }

    /// Removes all groups: a server has recalled one, or a user asks for all of them again.
    pub fn forget_groups(&self) {
        let mut inner = self.inner.lock();
        inner.groups.clear();
        inner.recalls += 1;
    }
}
