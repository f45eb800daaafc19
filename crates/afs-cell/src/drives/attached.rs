//! The drives that the partitions of this host have, and the owner's requests about them.

use super::draining::{Drains, RATE};
use super::keys::KeyRing;
use super::opened::Opened;
use super::rebuilding::Rebuilder;
use super::registry::LOCAL;
use super::rekeying;
use super::tiering::Tiers;
use super::{
    DrainOrder, DriveAnswer, DriveCheck, DriveEntry, DriveKeyLine, DriveKind, DriveLine, DriveRequest,
    DrivesError, Registry,
};
use afs_drive::{DriveId, LostDrive};
use afs_env::future::join_all;
use afs_env::{EnvExt, EnvRef};
use afs_remote::DirectDrive;
use afs_server::Partitions;
use afs_volume::{COPIES_MAX, VolumeError, VolumeStore};
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
    drains: Drains,
    rebuilder: Rebuilder,
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

    async fn list(&self) -> Vec<DriveLine> {
        let registry = self.registry.lock().clone();
        let mut lines = vec![self.line(LOCAL, DriveId::OWN, "disk", String::new())];
        lines.extend(join_all(registry.drives().iter().map(|entry| self.asked(entry))).await);
        lines
    }

    fn line(&self, name: &str, id: DriveId, kind: &str, at: String) -> DriveLine {
        let using = self.partitions.iter().filter(|(_, store)| store.drive_in_use() == id);
        let partitions = using.map(|(partition, _)| partition.to_string()).collect();
        let missing = self
            .partitions
            .iter()
            .filter(|(_, store)| store.drive_in_use() == id)
            .map(|(partition, _)| partition);
        let missing_copies = missing.map(|partition| self.rebuilder.missing(partition)).sum();
        let copying = self
            .partitions
            .iter()
            .filter(|(_, store)| store.drives_in_use().iter().skip(1).any(|drive| *drive == id));
        let copies = copying.map(|(partition, _)| partition.to_string()).collect();
        let (name, kind) = (name.to_owned(), kind.to_owned());
        DriveLine {
            name,
            id: id.0,
            kind,
            at,
            partitions,
            copies,
            missing_copies,
            free: None,
            total: None,
            problem: None,
            key: None,
            drain: self.drains.line(id),
        }
    }

    /// The line of a drive that was asked how it is.
    async fn asked(&self, entry: &DriveEntry) -> DriveLine {
        let id = DriveId(entry.id);
        let (kind, at) = match &entry.kind {
            DriveKind::Remote(settings) => ("remote", settings.address.to_string()),
            DriveKind::Bucket(settings) => ("bucket", settings.place.to_string()),
        };
        let mut line = self.line(&entry.name, id, kind, at);
        line.key = self.key_line(entry);
        if entry.lost {
            line.problem = Some("it was given up as lost".to_owned());
            return line;
        }
        let Some((partition, _)) = self.partitions.iter().next() else { return line };
        let opened = self.opened.lock().get(&(id, partition)).cloned();
        let usage =
            match opened.map_or_else(|| Opened::open(entry, (&self.env, &self.keys), partition, true), Ok) {
                Ok(opened) => opened.look().await.map_err(|error| error.to_string()),
                Err(why) => Err(why),
            };
        match usage {
            Ok(usage) => (line.free, line.total) = (usage.map(|u| u.free), usage.map(|u| u.total)),
            Err(why) => line.problem = Some(why),
        }
        line
    }

    fn key_line(&self, entry: &DriveEntry) -> Option<DriveKeyLine> {
        let DriveKind::Remote(settings) = &entry.kind else { return None };
        let (now, changing) = (self.env.wall().secs, settings.is_changing());
        let age = settings.since.map(|since| now.saturating_sub(since));
        Some(DriveKeyLine { epoch: settings.epoch, age, changing })
    }

    async fn remove(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let entry = registry.find(name)?.clone();
        let id = DriveId(entry.id);
        self.takes_no_tier(&registry, name, id)?;
        for (partition, store) in self.partitions.iter() {
            let in_use = |why: String| DrivesError::InUse(name.to_owned(), format!("{partition}: {why}"));
            if store.drives_in_use().contains(&id) {
                return Err(in_use("new data or copies go there".to_owned()));
            }
            if store.has_chunks_on(id).map_err(|error| in_use(error.to_string()))? {
                return Err(in_use(format!(
                    "files are on it, or wait for their discard; `andrew drive drain {name}` moves them"
                )));
            }
        }
        for (_, store) in self.partitions.iter() {
            // A drive that was never attached is not known to the store.
            if let Err(error @ afs_volume::VolumeError::Busy) = store.remove_drive(id) {
                return Err(DrivesError::InUse(name.to_owned(), error.to_string()));
            }
        }
        self.partitions.remove_direct(id);
        registry.remove(id.0);
        self.keep(registry)?;
        self.keys.remove(id.0);
        self.drains.cancel(id);
        Ok(DriveAnswer::Removed { left: self.withdraw(&entry).await })
    }

    /// Closes a drive of which nothing is needed any more. Returns why something of it remains in a bucket.
    async fn withdraw(&self, entry: &DriveEntry) -> Option<String> {
        let mut left = None;
        for (partition, _) in self.partitions.iter() {
            let opened = self.opened.lock().remove(&(DriveId(entry.id), partition));
            self.sweeping.lock().remove(&(DriveId(entry.id), partition));
            if let DriveKind::Bucket(settings) = &entry.kind
                && let Err(why) = settings.withdraw(opened, &self.env, &entry.name, partition).await
            {
                tracing::warn!(
                    drive = entry.name,
                    why,
                    "objects of a drive that was removed remain in its bucket"
                );
                left = Some(why);
            }
        }
        left
    }

    fn drain(&self, name: &str, to: Option<&str>, rate: Option<u64>) -> Result<DriveAnswer, DrivesError> {
        let refused = |why: &str| Err(DrivesError::Drain(name.to_owned(), why.to_owned()));
        let (id, to) = (self.id(name)?, to.map(|to| self.id(to)).transpose()?);
        if self.partitions.iter().any(|(_, store)| store.drives_in_use().contains(&id)) {
            return refused(
                "takes new data or copies; let another drive take them first: andrew drive use NAME",
            );
        }
        self.takes_no_tier(&self.registry.lock(), name, id)?;
        if to == Some(id) {
            return refused("cannot be drained to itself");
        }
        if let Some(to) = to {
            self.is_there(to)?;
        }
        let mut registry = self.registry.lock().clone();
        if registry.draining().any(|(draining, _)| Some(draining) == to) {
            return refused("cannot be drained to a drive that is drained itself");
        }
        let before = registry.draining().find(|(draining, _)| *draining == id).map(|(_, order)| order);
        // What is not said stays as it was ordered before.
        let order = DrainOrder {
            to: to.map(|to| to.0).or(before.and_then(|before| before.to)),
            rate: rate.or(before.map(|before| before.rate)).unwrap_or(RATE).max(1),
        };
        registry.set_draining(id, Some(order));
        self.keep(registry)?;
        self.drains.start(id, order);
        self.drain_line(name)
    }

    fn drain_line(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let line = self.drains.line(self.id(name)?);
        let none = || DrivesError::Drain(name.to_owned(), "is not drained".to_owned());
        line.map(DriveAnswer::Drain).ok_or_else(none)
    }

    fn cancel_drain(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let (id, mut registry) = (self.id(name)?, self.registry.lock().clone());
        registry.set_draining(id, None);
        self.keep(registry)?;
        self.drains.cancel(id);
        Ok(DriveAnswer::Done)
    }

    async fn check(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let id = self.id(name)?;
        let mut all = DriveCheck::default();
        for (_, store) in self.partitions.iter() {
            let checked =
                store.check_drive(id).await.map_err(|error| DrivesError::Store(error.to_string()))?;
            all.chunks += checked.chunks;
            all.bytes += checked.bytes;
            all.bad += checked.bad;
            all.first_bad.extend(checked.first_bad);
        }
        Ok(DriveAnswer::Checked(all))
    }

    fn use_drive(
        &self,
        name: &str,
        partition: Option<&str>,
        copies: &[String],
        same_host: bool,
    ) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let id = self.id(name)?;
        let copies = copies.iter().map(|name| self.id(name)).collect::<Result<Vec<_>, _>>()?;
        let ids: Vec<_> = [id].into_iter().chain(copies.iter().copied()).collect();
        ids.iter().try_for_each(|id| self.is_there(*id))?;
        check_copies(&registry, &ids, same_host)?;
        let chosen = partition
            .map(|text| text.parse::<PartitionId>().map_err(|_| DrivesError::NoPartition(text.to_owned())));
        let chosen = chosen.transpose()?;
        if let Some(id) = chosen.filter(|id| self.partitions.store(*id).is_none()) {
            return Err(DrivesError::NoPartition(id.to_string()));
        }
        if registry.draining().any(|(draining, _)| ids.contains(&draining)) {
            let why = format!("is drained; `andrew drive drain {name} --cancel` ends that");
            return Err(DrivesError::Drain(name.to_owned(), why));
        }
        let wanted = || self.partitions.iter().filter(|(id, _)| chosen.is_none_or(|chosen| chosen == *id));
        for (partition, _) in wanted() {
            registry.set_in_use(partition, id);
            registry.set_copies(partition, &copies);
        }
        for (_, store) in wanted() {
            store.use_drives(&ids).map_err(|error| DrivesError::Store(error.to_string()))?;
        }
        self.keep(registry)?;
        self.rebuilder.wake();
        Ok(DriveAnswer::Done)
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

/// Frees what an earlier crash left on a drive, as soon as it answers, and then what operations without an answer leave there, until
/// the drive is exchanged.
async fn sweep(env: EnvRef, store: VolumeStore, id: DriveId, name: String, present: Weak<()>) {
    let mut is_swept = false;
    while present.strong_count() > 0 {
        let swept = if is_swept { store.sweep_left(id).await } else { store.sweep_drive(id).await };
        match swept {
            Ok(_) => is_swept = true,
            Err(VolumeError::UnknownDrive { .. }) => return,
            Err(error) => {
                tracing::warn!(drive = name, %error, "what a crash or a lost reply left on a drive could not be freed yet");
            }
        }
        env.sleep(SWEEP_AGAIN).await;
    }
}

/// Whether each of some drives may have copies of the data of the others.
fn check_copies(registry: &Registry, ids: &[DriveId], same_host: bool) -> Result<(), DrivesError> {
    let refused = |why: &str| Err(DrivesError::Copies(why.to_owned()));
    if ids.len() > COPIES_MAX {
        return refused("data are on three drives at most: two take copies");
    }
    for (at, one) in ids.iter().enumerate() {
        for other in ids.iter().skip(at + 1) {
            if one == other {
                return refused("a drive cannot have a copy of its own data");
            }
            if !same_host && registry.host(*one) == registry.host(*other) {
                return refused(
                    "two of these drives are on one host, and would be lost together; --same-host permits it",
                );
            }
        }
    }
    Ok(())
}
