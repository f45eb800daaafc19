//! The drives that the partitions of this host have, and the owner's requests about them.

use super::draining::Drains;
use super::keys::KeyRing;
use super::opened::Opened;
use super::rebuilding::Rebuilder;
use super::registry::LOCAL;
use super::rekeying;
use super::tiering::Tiers;
use super::{DriveAnswer, DriveEntry, DriveKind, DriveRequest, DrivesError, Registry};
use afs_drive::{DriveId, LostDrive};
use afs_env::{EnvExt, EnvRef};
use afs_remote::DirectDrive;
use afs_server::Partitions;
use afs_volume::{VolumeError, VolumeStore};
use afs_wire::ids::PartitionId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Pause before a drive that was away is swept, and between two looks at what was left on one.
const SWEEP_AGAIN: Duration = Duration::from_secs(600);

/// The drives of a host's partitions. Clones are the same.
#[derive(Clone)]
pub(crate) struct AttachedDrives(Arc<Inner>);

pub(super) struct Inner {
    pub(super) env: EnvRef,
    pub(super) state: PathBuf,
    pub(super) partitions: Partitions,
    pub(super) registry: Mutex<Registry>,
    pub(super) keys: KeyRing,
    /// What the partitions have, so that questions to a drive take the connections that its files take.
    pub(super) opened: Mutex<BTreeMap<(DriveId, PartitionId), Opened>>,
    /// What ends the task that sweeps a drive, when it is dropped.
    pub(super) sweeping: Mutex<BTreeMap<(DriveId, PartitionId), Arc<()>>>,
    pub(super) drains: Drains,
    pub(super) rebuilder: Rebuilder,
    pub(super) tiers: Tiers,
    /// One request that changes something at a time.
    pub(super) turn: afs_env::sync::Mutex<()>,
}

impl AttachedDrives {
    /// Adds the drives of the registry to the partitions. A drive that cannot be reached fails its files alone. The keys of drives are
    /// changed when they are `key_age` old; not by themselves without.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub(crate) fn open(
        env: &EnvRef,
        state: &Path,
        partitions: &Partitions,
        key_age: Option<Duration>,
    ) -> Result<Self, DrivesError> {
        let registry = Registry::read(state)?;
        let inner = Inner {
            env: env.clone(),
            state: state.to_owned(),
            partitions: partitions.clone(),
            registry: Mutex::new(registry.clone()),
            keys: KeyRing::default(),
            opened: Mutex::default(),
            sweeping: Mutex::default(),
            drains: Drains::new(env, partitions),
            rebuilder: Rebuilder::start(env, partitions),
            tiers: Tiers::new(env, partitions),
            turn: afs_env::sync::Mutex::new(()),
        };
        for (partition, store) in inner.partitions.iter() {
            for entry in registry.drives() {
                if let Err(why) = inner.attach(entry, partition, store) {
                    tracing::error!(drive = entry.name, %why, "a drive cannot be used; its files cannot be read");
                }
            }
            if let Err(why) = store.use_drives(&registry.drives_of(partition)) {
                tracing::error!(%partition, %why, "new data go to the disk of the partition");
            }
        }
        inner.rebuilder.wake();
        registry.draining().for_each(|(drive, order)| inner.drains.start(drive, order));
        registry.tiers().for_each(|(volume, order)| inner.tiers.start(volume, order));
        let inner = Arc::new(inner);
        env.spawn(Box::pin(rekeying::keep_new(env.clone(), Arc::downgrade(&inner), key_age)));
        Ok(Self(inner))
    }

    /// Serves a request of the owner. May wait for other hosts.
    ///
    /// # Errors
    /// Why it was not done, for a person.
    pub(crate) async fn serve(&self, request: DriveRequest) -> Result<DriveAnswer, DrivesError> {
        let turn = self.0.turn.lock().await;
        match request {
            DriveRequest::Rekey { name } => {
                // It takes the turn for what it keeps, and waits for the drive without.
                drop(turn);
                self.0.rekey(&name).await
            }
            DriveRequest::Add { name, address, join_key } => self.0.add(&name, address, &join_key).await,
            DriveRequest::AddBucket { name, place } => self.0.add_bucket(&name, place).await,
            DriveRequest::List => Ok(DriveAnswer::List(self.0.list().await)),
            DriveRequest::Remove { name } => self.0.remove(&name).await,
            DriveRequest::Lose { name } => self.0.lose(&name),
            DriveRequest::Find { name } => self.0.find(&name),
            DriveRequest::Check { name } => self.0.check(&name).await,
            DriveRequest::Drain { name, to, rate } => self.0.drain(&name, to.as_deref(), rate),
            DriveRequest::Drained { name } => self.0.drain_line(&name),
            DriveRequest::CancelDrain { name } => self.0.cancel_drain(&name),
            DriveRequest::Use { name, partition, copies, same_host } => {
                self.0.use_drive(&name, partition.as_deref(), &copies, same_host)
            }
            DriveRequest::Tier { volume, order } => self.0.tier(&volume, order),
            DriveRequest::EndTier { volume } => self.0.end_tier(&volume),
        }
    }
}

impl Inner {
    pub(super) fn attach(
        &self,
        entry: &DriveEntry,
        partition: PartitionId,
        store: &VolumeStore,
    ) -> Result<(), String> {
        let id = DriveId(entry.id);
        if entry.lost {
            return store.add_drive(id, Arc::new(LostDrive)).map_err(|error| error.to_string());
        }
        let is_used = store.has_chunks_on(id).map_err(|error| error.to_string())?;
        let opened = Opened::open(entry, (&self.env, &self.keys), partition, is_used)?;
        store.add_drive(id, opened.drive()).map_err(|error| error.to_string())?;
        self.begin(entry, partition, store, opened);
        Ok(())
    }

    /// Begins to use a drive that a partition has: clients may be sent there, and garbage on it is freed.
    pub(super) fn begin(
        &self,
        entry: &DriveEntry,
        partition: PartitionId,
        store: &VolumeStore,
        opened: Opened,
    ) {
        let id = DriveId(entry.id);
        if let DriveKind::Remote(settings) = &entry.kind
            && let Ok(keys) = self.keys.of(entry.id, settings)
            && let Ok(options) = settings.options(&entry.name, partition, keys)
        {
            self.partitions.add_direct(partition, id, DirectDrive::new(self.env.clone(), options));
        }
        if let Opened::Bucket(bucket) = &opened {
            self.partitions.add_addressed(partition, id, Arc::new(bucket.clone()));
        }
        self.opened.lock().insert((id, partition), opened);
        let present = Arc::new(());
        let (env, store, name) = (self.env.clone(), store.clone(), entry.name.clone());
        self.env.spawn(Box::pin(sweep(env, store, id, name, Arc::downgrade(&present))));
        self.sweeping.lock().insert((id, partition), present);
    }

    /// Writes the registry, then shows it.
    pub(super) fn keep(&self, registry: Registry) -> Result<(), DrivesError> {
        registry.write(&self.state)?;
        *self.registry.lock() = registry;
        Ok(())
    }

    /// Refuses a drive that was given up.
    pub(super) fn is_there(&self, id: DriveId) -> Result<(), DrivesError> {
        let registry = self.registry.lock();
        match registry.drives().iter().find(|entry| entry.id == id.0 && entry.lost) {
            Some(entry) => Err(DrivesError::Drain(entry.name.clone(), "was given up as lost".to_owned())),
            None => Ok(()),
        }
    }

    /// Refuses a drive to which files of a volume are moved: they would come back to it.
    pub(super) fn takes_no_tier(
        &self,
        registry: &Registry,
        name: &str,
        id: DriveId,
    ) -> Result<(), DrivesError> {
        match registry.tiers().find(|(_, order)| order.drive == id.0) {
            Some((volume, _)) => Err(DrivesError::Tiered(name.to_owned(), volume.0)),
            None => Ok(()),
        }
    }

    pub(super) fn id(&self, name: &str) -> Result<DriveId, DrivesError> {
        match name {
            LOCAL => Ok(DriveId::OWN),
            _ => Ok(DriveId(self.registry.lock().find(name)?.id)),
        }
    }
}

/// Frees what operations without an answer leave on a drive, until it is exchanged, and once, when that is due, what an earlier crash left
/// there.
async fn sweep(env: EnvRef, store: VolumeStore, id: DriveId, name: String, present: Weak<()>) {
    let (mut is_swept, added) = (false, env.now());
    while present.strong_count() > 0 {
        let is_due = !is_swept && store.is_sweep_due(id, added).unwrap_or(true);
        let swept = if is_due { store.sweep_drive(id).await } else { store.sweep_left(id).await };
        match swept {
            Ok(_) => is_swept |= is_due,
            Err(VolumeError::UnknownDrive { .. }) => return,
            Err(error) => {
                tracing::warn!(drive = name, %error, "what a crash or a lost reply left on a drive could not be freed yet");
            }
        }
        env.sleep(SWEEP_AGAIN).await;
    }
}
