//! Volume store: all volumes of one partition.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use afs_drive::{Drive, DriveId, Usage};
use afs_env::EnvRef;
use afs_env::sync::Notify;
use afs_kv::{Kv, Txn};
use afs_wire::ids::{FileTime, UnixSeconds, VolumeId, VolumeKind, VolumeName};
use parking_lot::{Mutex, MutexGuard};

use crate::cache::VnodeCache;
use crate::chunk_rows;
use crate::compactions::Compactions;
use crate::drives::Drives;
use crate::error::VolumeError;
use crate::gathering::Gathering;
use crate::group;
use crate::growth::Growths;
use crate::header::{VolumeHeader, decode_header};
use crate::ids::GroupId;
use crate::key::{self, COPIES, HEADERS};
use crate::leases::Leases;
use crate::lent;
use crate::location::Location;
use crate::open_error::OpenError;
use crate::spec::VolumeSpec;
use crate::tx::VolumeTx;
use crate::upgrade;
use crate::volume::Volume;

/// Bounds of a store.
#[derive(Clone, Debug)]
pub struct Config {
    /// Vnode records kept in memory for readers, about 300 bytes each. Default 65536.
    pub cached_vnodes: usize,
    /// Bytes of small contents (up to 64 KiB each) kept in memory for readers. Default 32 MiB.
    pub cached_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { cached_vnodes: 65536, cached_bytes: 32 << 20 }
    }
}

/// The volumes of one partition: an index of rows and a drive of chunks. A handle; cheap to clone.
#[derive(Clone)]
pub struct VolumeStore {
    pub(crate) store: Arc<Store>,
    /// Separate from `Store`, which volumes reference, to avoid a cycle.
    volumes: Arc<Mutex<BTreeMap<VolumeId, Arc<Volume>>>>,
}

pub(crate) struct Store {
    pub(crate) kv: Kv,
    pub(crate) drives: Drives,
    pub(crate) env: EnvRef,
    pub(crate) cache: VnodeCache,
    pub(crate) leases: Leases,
    pub(crate) work: Arc<Notify>,
    /// Whether a timer runs for chunks that a drive did not discard.
    pub(crate) retry: AtomicBool,
    pub(crate) compactions: Compactions,
    pub(crate) growths: Growths,
    /// Whether a chunk may have copies.
    pub(crate) has_copies: AtomicBool,
    /// Signalled when data were stored that lack copies, and could have them.
    pub(crate) lacks_copies: Mutex<Option<Arc<Notify>>>,
    pub(crate) gathering: Arc<Gathering>,
    /// The last discarded row of the queue of dead chunks, so that its deleted front is not scanned again.
    pub(crate) discarded: Mutex<Vec<u8>>,
    /// The group that background work was done for last.
    pub(crate) last_group: Mutex<GroupId>,
    /// The volumes, for commits that change several.
    pub(crate) shown: Mutex<BTreeMap<VolumeId, Weak<Volume>>>,
    /// Volumes being restored, and the groups in which the restores write.
    pub(crate) restores: Mutex<BTreeMap<VolumeId, GroupId>>,
}

impl Store {
    pub(crate) fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    /// The same to the nanosecond.
    pub(crate) fn time(&self) -> FileTime {
        let now = self.env.wall();
        FileTime::new(UnixSeconds(now.secs_u32()), now.nanos)
    }

    pub(crate) fn register(&self, volume: &Arc<Volume>) {
        self.shown.lock().insert(volume.id(), Arc::downgrade(volume));
    }

    /// Publishes a commit's header of a volume, before any reader can see the commit; `None` removes the
    /// volume. `frozen` says that the volume's state was passed to a clone, so that it continues in another
    /// epoch with the same content.
    pub(crate) fn show(&self, id: VolumeId, header: Option<VolumeHeader>, sequence: u64, frozen: bool) {
        let volume = match &header {
            Some(_) => self.shown.lock().get(&id).cloned(),
            // The id may be given to another volume, which readers of this one must not meet.
            None => self.shown.lock().remove(&id),
        };
        let Some(volume) = volume.and_then(|volume| volume.upgrade()) else { return };
        let location = header.as_ref().map(Location::of);
        let moves = location != Some(Location::of(&volume.header())) && !frozen;
        volume.show_header(header, sequence);
        if moves {
            self.cache.invalidate_volume(id, sequence);
            self.growths.forget(id);
        }
    }

    /// Whether a restore of this volume is in progress.
    pub(crate) fn is_restoring(&self, id: VolumeId) -> bool {
        self.restores.lock().contains_key(&id)
    }

    /// Whether a restore in progress writes in this group.
    pub(crate) fn is_staging(&self, group: GroupId) -> bool {
        self.restores.lock().values().any(|staged| *staged == group)
    }
}

impl VolumeStore {
    /// Its index.
    #[must_use]
    pub fn index(&self) -> &Kv {
        &self.store.kv
    }

    /// Opens a store on an index that was opened with [`TABLES`](crate::TABLES), and its drive. An empty
    /// index becomes an empty store.
    pub async fn open(kv: Kv, drive: Arc<dyn Drive>, env: EnvRef, config: Config) -> Result<Self, OpenError> {
        upgrade::check_format(&kv).await?;
        if let Some(last) = chunk_rows::last_chunk(&kv, DriveId::OWN)? {
            drive.continue_after(last);
        }
        let has_copies = kv.snapshot().range(COPIES, .., false).next().transpose()?.is_some();
        let store = Arc::new(Store {
            kv,
            drives: Drives::new(drive),
            env,
            cache: VnodeCache::new(config.cached_vnodes, config.cached_bytes),
            leases: Leases::default(),
            work: Arc::default(),
            retry: AtomicBool::new(false),
            compactions: Compactions::default(),
            growths: Growths::default(),
            has_copies: AtomicBool::new(has_copies),
            lacks_copies: Mutex::default(),
            gathering: Arc::default(),
            discarded: Mutex::default(),
            last_group: Mutex::new(GroupId(0)),
            shown: Mutex::default(),
            restores: Mutex::default(),
        });
        lent::take_back_all(&store).await?;
        let mut volumes = BTreeMap::new();
        let snapshot = store.kv.snapshot();
        for row in snapshot.range(HEADERS, .., false) {
            let header = decode_header(row?.1)?;
            volumes.insert(header.id, Volume::new(store.clone(), header));
        }
        drop(snapshot);
        // Work may have been left over.
        store.work.notify_one();
        Ok(Self { store, volumes: Arc::new(Mutex::new(volumes)) })
    }

    /// The volume with this id.
    pub fn volume(&self, id: VolumeId) -> Option<Arc<Volume>> {
        self.map().get(&id).cloned()
    }

    /// All volumes, by ascending id.
    pub fn volumes(&self) -> Vec<Arc<Volume>> {
        self.map().values().cloned().collect()
    }

    /// Bytes of stores in progress that are in memory, except those being written to the drive.
    pub fn gathered_bytes(&self) -> usize {
        self.store.gathering.bytes()
    }

    /// Space for new data: on the drive that takes them, or, before anything is known of that one, beside the index.
    pub fn usage(&self) -> Result<Usage, VolumeError> {
        let (_, drive) = self.store.drives.for_new_data();
        Ok(drive.usage().or_else(|_| self.store.drives.own().usage())?)
    }

    /// The named snapshots of a read-write volume, newest first.
    pub fn snapshots(&self, of: VolumeId) -> Vec<Arc<Volume>> {
        let mut found: Vec<_> = self
            .volumes()
            .into_iter()
            .map(|volume| (volume.header(), volume))
            .filter(|(header, _)| header.snapshot && header.parent == of)
            .collect();
        let age = |header: &VolumeHeader| (header.creation_date, header.group, header.epoch, header.id);
        found.sort_by_key(|(header, _)| std::cmp::Reverse(age(header)));
        found.into_iter().map(|(_, volume)| volume).collect()
    }

    /// Creates an empty volume, with a root directory if the specification has an access list for it. Durable
    /// when this resolves.
    ///
    /// # Errors
    /// `VolumeExists` if the id or the name is taken; `Invalid` for an id of 0.
    pub async fn create_volume(&self, spec: VolumeSpec) -> Result<Arc<Volume>, VolumeError> {
        self.create(spec, false).await
    }

    /// Creates an empty volume that is marked for deletion.
    pub async fn create_marked(&self, spec: VolumeSpec) -> Result<Arc<Volume>, VolumeError> {
        self.create(spec, true).await
    }

    async fn create(&self, spec: VolumeSpec, destroy: bool) -> Result<Arc<Volume>, VolumeError> {
        let store = self.store.clone();
        let header = self.store.kv.update(move |txn| create(txn, &store, spec, destroy)).await?;
        Ok(self.show_new(header))
    }

    /// Adds a new volume to the map.
    pub(crate) fn show_new(&self, header: VolumeHeader) -> Arc<Volume> {
        let volume = Volume::new(self.store.clone(), header);
        self.map().insert(volume.id(), volume.clone());
        volume
    }

    pub(crate) fn forget(&self, id: VolumeId) {
        self.map().remove(&id);
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<VolumeId, Arc<Volume>>> {
        self.volumes.lock()
    }

    /// Renames a volume.
    pub async fn rename_volume(&self, id: VolumeId, name: VolumeName) -> Result<(), VolumeError> {
        let volume = self.volume(id).ok_or(VolumeError::NoVolume)?;
        volume
            .edit(move |tx| {
                tx.check_name_free(&name)?;
                tx.edit_header().name = name;
                Ok(())
            })
            .await
    }
}

impl VolumeTx<'_, '_> {
    fn check_name_free(&self, name: &VolumeName) -> Result<(), VolumeError> {
        check_name_free(self.txn(), name, self.header().id)
    }
}

fn create(
    txn: &mut Txn<'_>,
    store: &Arc<Store>,
    spec: VolumeSpec,
    destroy: bool,
) -> Result<VolumeHeader, VolumeError> {
    if spec.id.0 == 0 {
        return Err(VolumeError::Invalid);
    }
    if txn.get(HEADERS, &key::volume(spec.id))?.is_some() {
        return Err(VolumeError::VolumeExists);
    }
    if !destroy {
        check_name_free(txn, &spec.name, spec.id)?;
    }
    let writer = Some(spec.id).filter(|_| spec.kind == VolumeKind::ReadWrite);
    let location = group::make(txn, writer)?;
    group::epochs::hold(txn, location)?;
    let header = VolumeHeader::new(&spec, location.group, store.now());
    let mut tx = VolumeTx::with(txn, store, header);
    let marked = tx.edit_header();
    (marked.destroy, marked.online) = (destroy, !destroy);
    if let Some(acl) = spec.root {
        tx.make_root(acl)?;
    }
    let header = tx.header().clone();
    tx.finish()?;
    // Records of a deleted volume with this id may still be cached.
    let (store, id) = (store.clone(), header.id);
    txn.before_visible(move |sequence| store.cache.invalidate_volume(id, sequence));
    Ok(header)
}

/// Names are few and change rarely, so a scan of all headers is enough.
fn check_name_free(txn: &Txn<'_>, name: &VolumeName, except: VolumeId) -> Result<(), VolumeError> {
    for row in txn.range(HEADERS, .., false) {
        let header = decode_header(row?.1)?;
        if header.name == *name && header.id != except {
            return Err(VolumeError::VolumeExists);
        }
    }
    Ok(())
}
