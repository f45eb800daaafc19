//! All volumes of one partition.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afs_drive::{Drive, Usage};
use afs_kv::{Kv, KvError, Txn};
use afs_wire::acl::Acl;
use afs_wire::ids::{UnixSeconds, ViceId, VolumeId, VolumeName};
use bytes::Bytes;

use crate::cache::VnodeCache;
use crate::compactions::Compactions;
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::key::{self, HEADERS, META};
use crate::leases::Leases;
use crate::notify::Notify;
use crate::rows::damaged;
use crate::tx::VolumeTx;
use crate::volume::Volume;

/// Tells the time of changes.
pub type Clock = Arc<dyn Fn() -> UnixSeconds + Send + Sync>;

/// Bounds and clock of a store.
#[derive(Clone)]
pub struct Config {
    /// The time, for dates in records and headers.
    pub clock: Clock,
    /// Vnode records kept in memory for readers, about 300 bytes each. Default 65536.
    pub cached_vnodes: usize,
}

impl Config {
    /// Defaults, with this clock.
    pub fn new(clock: impl Fn() -> UnixSeconds + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), cached_vnodes: 65536 }
    }
}

/// A store cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Written by another version of this program.
    #[error("the volume store has format {found}; this program reads format {expected}")]
    Format {
        /// What the store says.
        found: u32,
        /// What this program knows.
        expected: u32,
    },
    /// Reading failed, or what was read is damaged.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl From<KvError> for OpenError {
    fn from(error: KvError) -> Self {
        Self::Volume(error.into())
    }
}

/// What a new read-write volume is to be.
#[derive(Clone, Debug)]
pub struct VolumeSpec {
    /// Its number, which the location database gave out.
    pub id: VolumeId,
    /// Its name.
    pub name: VolumeName,
    /// Whom it and its root directory belong to.
    pub owner: ViceId,
    /// The most it may use, in KiB; 0 is no limit.
    pub max_quota: u32,
    /// The access list of its root directory.
    pub root_acl: Acl,
}

/// The volumes of one partition: an index of rows and a drive of chunks. Cloning gives another handle.
#[derive(Clone)]
pub struct VolumeStore {
    pub(crate) store: Arc<Store>,
    /// Apart from what volumes refer to, so that nothing refers to itself.
    volumes: Arc<Mutex<BTreeMap<VolumeId, Arc<Volume>>>>,
}

pub(crate) struct Store {
    pub(crate) kv: Kv,
    pub(crate) drive: Arc<dyn Drive>,
    pub(crate) clock: Clock,
    pub(crate) cache: VnodeCache,
    pub(crate) leases: Leases,
    pub(crate) work: Notify,
    pub(crate) compactions: Compactions,
    /// The last discarded row of the queue of dead chunks, so that its removed front is not walked again.
    pub(crate) discarded: Mutex<Vec<u8>>,
}

impl Store {
    pub(crate) fn now(&self) -> UnixSeconds {
        (self.clock)()
    }
}

impl VolumeStore {
    /// Opens a store on an index that was opened with [`TABLES`](crate::TABLES), and its drive. An empty index becomes an
    /// empty store.
    pub async fn open(kv: Kv, drive: Arc<dyn Drive>, config: Config) -> Result<Self, OpenError> {
        check_format(&kv).await?;
        let store = Arc::new(Store {
            kv,
            drive,
            clock: config.clock,
            cache: VnodeCache::new(config.cached_vnodes),
            leases: Leases::default(),
            work: Notify::default(),
            compactions: Compactions::default(),
            discarded: Mutex::default(),
        });
        let mut volumes = BTreeMap::new();
        let snapshot = store.kv.snapshot();
        for row in snapshot.range(HEADERS, .., false) {
            let header = decode_header(row?.1)?;
            if !header.doomed {
                volumes.insert(header.id, Volume::new(store.clone(), header));
            }
        }
        drop(snapshot);
        // Something may have been left to do.
        store.work.notify();
        Ok(Self { store, volumes: Arc::new(Mutex::new(volumes)) })
    }

    /// The volume of this number.
    pub fn volume(&self, id: VolumeId) -> Option<Arc<Volume>> {
        self.map().get(&id).cloned()
    }

    /// All volumes, in the order of their numbers.
    pub fn volumes(&self) -> Vec<Arc<Volume>> {
        self.map().values().cloned().collect()
    }

    /// Room on the partition.
    pub fn usage(&self) -> Result<Usage, VolumeError> {
        Ok(self.store.drive.usage()?)
    }

    /// Makes a read-write volume with an empty root directory. Durable when this resolves.
    pub async fn create_volume(&self, spec: VolumeSpec) -> Result<Arc<Volume>, VolumeError> {
        let store = self.store.clone();
        let header = self.store.kv.update(move |txn| create(txn, &store, spec)).await?;
        let volume = Volume::new(self.store.clone(), header);
        Ok(self.map().entry(volume.id()).or_insert(volume).clone())
    }

    /// Takes a volume away: at once invisible, its rows and chunks go in the background.
    pub async fn delete_volume(&self, id: VolumeId) -> Result<(), VolumeError> {
        let volume = self.volume(id).ok_or(VolumeError::NoVolume)?;
        volume
            .edit(|tx| {
                tx.edit_header().doomed = true;
                Ok(())
            })
            .await?;
        self.map().remove(&id);
        self.store.work.notify();
        Ok(())
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<VolumeId, Arc<Volume>>> {
        self.volumes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a volume another name.
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

fn create(txn: &mut Txn<'_>, store: &Arc<Store>, spec: VolumeSpec) -> Result<VolumeHeader, VolumeError> {
    if spec.id.0 == 0 {
        return Err(VolumeError::Invalid);
    }
    if let Some(stored) = txn.get(HEADERS, &key::volume(spec.id))? {
        // A number whose rows are still being taken down can be used again a little later.
        let doomed = decode_header(stored)?.doomed;
        return Err(if doomed { VolumeError::Busy } else { VolumeError::VolumeExists });
    }
    check_name_free(txn, &spec.name, spec.id)?;
    let header = VolumeHeader::new(spec.id, spec.name, spec.owner, spec.max_quota, store.now());
    let mut tx = VolumeTx::with(txn, store, header);
    tx.make_root(spec.root_acl)?;
    let header = tx.header().clone();
    tx.finish(None);
    // Records of a deleted volume of this number may still be in memory.
    let (store, id) = (store.clone(), header.id);
    txn.before_visible(move |sequence| store.cache.invalidate_volume(id, sequence));
    Ok(header)
}

/// Names are few and change rarely, so that looking through all headers will do.
fn check_name_free(txn: &Txn<'_>, name: &VolumeName, except: VolumeId) -> Result<(), VolumeError> {
    for row in txn.range(HEADERS, .., false) {
        let header = decode_header(row?.1)?;
        if header.name == *name && header.id != except && !header.doomed {
            return Err(VolumeError::VolumeExists);
        }
    }
    Ok(())
}

pub(crate) fn decode_header(stored: Bytes) -> Result<VolumeHeader, VolumeError> {
    VolumeHeader::decode(stored)
        .map_err(|_| damaged(afs_wire::ids::VnodeId(0), "a volume header cannot be decoded"))
}

async fn check_format(kv: &Kv) -> Result<(), OpenError> {
    let stored = kv.snapshot().get(META, FORMAT_KEY)?;
    match stored {
        Some(bytes) => match bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)) {
            Some(FORMAT) => Ok(()),
            found => Err(OpenError::Format { found: found.unwrap_or(0), expected: FORMAT }),
        },
        None => {
            let put = |txn: &mut Txn<'_>| {
                txn.put(META, FORMAT_KEY, FORMAT.to_be_bytes().to_vec());
                Ok::<_, VolumeError>(())
            };
            Ok(kv.update(put).await.map_err(VolumeError::from)?)
        }
    }
}

const FORMAT_KEY: &[u8] = b"format";
const FORMAT: u32 = 1;
