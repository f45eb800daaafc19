//! Volumes in use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_rpc::Instant;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vol::Snapshot;
use parking_lot::Mutex;

use crate::api::NodeId;
use crate::key::CellIndex;
use crate::location::choice::{self, Candidate};
use crate::location::{Group, Server};
use crate::promise::{Promise, ServerReset};

/// By which mount point a volume was entered last: where `..` of its root leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entered {
    /// The directory of the mount point.
    pub parent: NodeId,
    /// The mount point's text.
    pub text: String,
}

/// One volume.
pub(crate) struct Volume {
    pub cell: CellIndex,
    pub id: VolumeId,
    pub kind: VolumeKind,
    /// The number of the last break of the volume as a whole.
    pub broken: AtomicU64,
    /// The number of the last break of an object of it that we did not know. An object that is just being created is
    /// unknown until the reply comes; its promise does not count if there was such a break in between.
    pub stray: AtomicU64,
    /// When to ask again where it is, in nanoseconds, because of what a server said; 0 is never.
    check_location_at: AtomicU64,
    state: Mutex<State>,
}

struct State {
    group: Arc<Group>,
    sites: Vec<Arc<Server>>,
    /// The site that was asked last, of several.
    chosen: Option<Arc<Server>>,
    located_at: Instant,
    creation: Option<UnixSeconds>,
    /// Of a volume that cannot be written: the one promise for all of it.
    promise: Option<Promise>,
    entered: Option<Entered>,
    snapshots: Option<KnownSnapshots>,
    /// Of a snapshot: when it was made.
    made_at: Option<UnixSeconds>,
}

/// What a server told of the snapshots of a volume.
#[derive(Clone)]
pub(crate) struct KnownSnapshots {
    /// `None`: it does not know what snapshots are.
    pub list: Option<Arc<[Snapshot]>>,
    /// When it was asked.
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
            state: Mutex::new(state),
        }
    }

    pub fn is_writable(&self) -> bool {
        self.kind == VolumeKind::ReadWrite
    }

    /// Its own name, as the location service has it.
    pub fn name(&self) -> String {
        format!("{}{}", self.group().name, self.kind.suffix())
    }

    pub fn group(&self) -> Arc<Group> {
        self.state.lock().group.clone()
    }

    /// Its sites, best first. Of several the one that was chosen before comes first while it is as good as any.
    pub fn sites(&self, now: Instant) -> Vec<Arc<Server>> {
        let mut state = self.state.lock();
        if state.sites.len() < 2 {
            return state.sites.clone();
        }
        let candidate = |server: &Arc<Server>| Candidate {
            distance: server.distance(now),
            is_unreachable: server.is_unreachable(),
            // Another lot for each volume, or all of them would burden the same server.
            draw: server.draw.rotate_left(self.id.0 % 64),
            is_chosen: state.chosen.as_ref().is_some_and(|chosen| Arc::ptr_eq(chosen, server)),
        };
        let candidates: Vec<Candidate> = state.sites.iter().map(candidate).collect();
        let order = choice::order(&candidates);
        let sites: Vec<_> = order.iter().filter_map(|index| state.sites.get(*index).cloned()).collect();
        state.chosen = sites.first().cloned();
        sites
    }

    /// Whether none of its servers answered when last called.
    pub fn is_unreachable(&self, now: Instant) -> bool {
        self.sites(now).iter().all(|server| server.is_unreachable())
    }

    /// Whether a server is one of its sites.
    pub fn is_at(&self, server: &ServerReset) -> bool {
        self.state.lock().sites.iter().any(|site| site.reset.is_same(server))
    }

    /// A server said something that may mean the volume is elsewhere: the next call asks first.
    pub fn doubt_location(&self) {
        self.check_location_at.store(1, Ordering::SeqCst);
    }

    /// Whether somebody should ask where it is now. He has it to do; `again` is when the next one has, if nothing comes of it.
    pub fn claim_location_check(&self, now: Instant, again: Instant) -> bool {
        let at = self.check_location_at.load(Ordering::SeqCst);
        let due = at != 0 && Instant::from_nanos(at) <= now;
        let again = again.as_nanos().max(1);
        due && self.check_location_at.compare_exchange(at, again, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub fn located_at(&self) -> Instant {
        self.state.lock().located_at
    }

    /// A new answer of the location service. Says whether the sites are others than before.
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

    /// A reply showed the volume's creation time. Says whether it is another volume than before: a new release, or
    /// restored from a dump (docs/protocol/fileserver.md "2. Structures", AFSVolSync).
    pub fn saw_creation(&self, creation: UnixSeconds) -> bool {
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

    /// Whether the promise for all of a read-only volume is by this server.
    pub fn is_promised_by(&self, server: &ServerReset) -> bool {
        self.state.lock().promise.as_ref().is_some_and(|promise| promise.server.is_same(server))
    }

    /// Drops the promise for all of a read-only volume if it is by a server that is no site any more. Says whether it did.
    pub fn drop_promise_of_former_site(&self) -> bool {
        let mut state = self.state.lock();
        let State { promise, sites, .. } = &mut *state;
        let is_former = |promise: &mut Promise| !sites.iter().any(|site| site.reset.is_same(&promise.server));
        promise.take_if(is_former).is_some()
    }

    /// Whether the promise for all of a read-only volume holds.
    pub fn is_promised(&self, now: Instant) -> bool {
        let broken = self.broken.load(Ordering::SeqCst);
        self.state.lock().promise.as_ref().is_some_and(|promise| promise.holds(now, broken))
    }

    /// When that promise ends; `None` if there is none.
    pub fn promised_until(&self) -> Option<Instant> {
        self.state.lock().promise.as_ref().map(|promise| promise.until)
    }

    /// What is known of its snapshots, if it was asked for after `since`.
    pub fn snapshots(&self, since: Instant) -> Option<KnownSnapshots> {
        self.state.lock().snapshots.clone().filter(|known| known.asked >= since)
    }

    /// Takes an answer in; `None` forgets what was known.
    pub fn set_snapshots(&self, known: Option<KnownSnapshots>) {
        self.state.lock().snapshots = known;
    }

    /// It is a snapshot, made then.
    pub fn set_made_at(&self, when: UnixSeconds) {
        self.state.lock().made_at = Some(when);
    }

    /// When the snapshot was made that it is.
    pub fn made_at(&self) -> Option<UnixSeconds> {
        self.state.lock().made_at
    }

    pub fn enter(&self, entered: Entered) {
        self.state.lock().entered = Some(entered);
    }

    pub fn entered(&self) -> Option<Entered> {
        self.state.lock().entered.clone()
    }
}

/// Volumes by number, and groups by name. Bounded: beyond the bound those not used longest are asked for again.
#[derive(Default)]
pub(crate) struct VolumeTable(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    volumes: BTreeMap<(CellIndex, VolumeId), Arc<Volume>>,
    groups: BTreeMap<(CellIndex, String), (Arc<Group>, Instant)>,
}

/// Names remembered. Volumes are kept: their marks of breaks must not be lost.
const GROUPS_MAX: usize = 4096;

impl VolumeTable {
    pub fn get(&self, cell: CellIndex, id: VolumeId) -> Option<Arc<Volume>> {
        self.0.lock().volumes.get(&(cell, id)).cloned()
    }

    /// All volumes of this number: a break does not say of which cell it is.
    pub fn with_id(&self, id: VolumeId) -> Vec<Arc<Volume>> {
        self.0.lock().volumes.values().filter(|volume| volume.id == id).cloned().collect()
    }

    pub fn all(&self) -> Vec<Arc<Volume>> {
        self.0.lock().volumes.values().cloned().collect()
    }

    /// The volume, made if it is new.
    pub fn learn(
        &self,
        cell: CellIndex,
        id: VolumeId,
        kind: VolumeKind,
        group: Arc<Group>,
        sites: Vec<Arc<Server>>,
        now: Instant,
    ) -> Arc<Volume> {
        let mut inner = self.0.lock();
        let make = || Arc::new(Volume::new(cell, id, kind, group, sites, now));
        inner.volumes.entry((cell, id)).or_insert_with(make).clone()
    }

    /// What the location service said of a name, if that was after `since`.
    pub fn group(&self, cell: CellIndex, name: &str, since: Instant) -> Option<Arc<Group>> {
        let inner = self.0.lock();
        let (group, asked) = inner.groups.get(&(cell, name.to_owned()))?;
        (*asked >= since).then(|| group.clone())
    }

    pub fn remember_group(&self, cell: CellIndex, name: &str, group: Arc<Group>, now: Instant) {
        let mut inner = self.0.lock();
        if inner.groups.len() >= GROUPS_MAX
            && let Some(oldest) =
                inner.groups.iter().min_by_key(|(_, (_, asked))| *asked).map(|(name, _)| name.clone())
        {
            inner.groups.remove(&oldest);
        }
        inner.groups.insert((cell, name.to_owned()), (group, now));
    }

    pub fn forget_groups(&self) {
        self.0.lock().groups.clear();
    }
}
