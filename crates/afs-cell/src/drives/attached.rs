//! The drives that the partitions of this host have, and the owner's requests about them.

use super::draining::{Drains, RATE};
use super::registry::{KeyText, LOCAL};
use super::{
    DrainOrder, DriveAnswer, DriveCheck, DriveEntry, DriveKind, DriveLine, DriveRequest, DrivesError,
    JoinKey, Registry, RemoteSettings,
};
use afs_datapath::capability::Secret;
use afs_datapath::session::Security;
use afs_drive::DriveId;
use afs_env::{EnvExt, EnvRef};
use afs_server::Partitions;
use afs_volume::VolumeStore;
use afs_wire::ids::PartitionId;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The drives of a host's partitions. Clones are the same.
#[derive(Clone)]
pub(crate) struct AttachedDrives(Arc<Inner>);

struct Inner {
    env: EnvRef,
    state: PathBuf,
    partitions: Partitions,
    registry: Mutex<Registry>,
    drains: Drains,
    /// One request that changes something at a time.
    turn: afs_env::sync::Mutex<()>,
}

impl AttachedDrives {
    /// Adds the drives of the registry to the partitions. A drive that cannot be reached fails its files alone.
    ///
    /// # Errors
    /// The registry cannot be read.
    pub(crate) fn open(env: &EnvRef, state: &Path, partitions: &Partitions) -> Result<Self, DrivesError> {
        let registry = Registry::read(state)?;
        let inner = Inner {
            env: env.clone(),
            state: state.to_owned(),
            partitions: partitions.clone(),
            registry: Mutex::new(registry.clone()),
            drains: Drains::new(env, partitions),
            turn: afs_env::sync::Mutex::new(()),
        };
        for (partition, store) in inner.partitions.iter() {
            for entry in registry.drives() {
                if let Err(why) = inner.attach(entry, partition, store) {
                    tracing::error!(drive = entry.name, %why, "a drive cannot be used; its files cannot be read");
                }
            }
            if let Err(why) = store.use_drive(registry.in_use(partition)) {
                tracing::error!(%partition, %why, "new data go to the disk of the partition");
            }
        }
        registry.draining().for_each(|(drive, order)| inner.drains.start(drive, order));
        Ok(Self(Arc::new(inner)))
    }

    /// Serves a request of the owner. May wait for other hosts.
    ///
    /// # Errors
    /// Why it was not done, for a person.
    pub(crate) async fn serve(&self, request: DriveRequest) -> Result<DriveAnswer, DrivesError> {
        let _turn = self.0.turn.lock().await;
        match request {
            DriveRequest::Add { name, address, join_key } => self.0.add(&name, address, &join_key).await,
            DriveRequest::List => Ok(DriveAnswer::List(self.0.list().await)),
            DriveRequest::Remove { name } => self.0.remove(&name),
            DriveRequest::Check { name } => self.0.check(&name).await,
            DriveRequest::Drain { name, to, rate } => self.0.drain(&name, to.as_deref(), rate),
            DriveRequest::Drained { name } => self.0.drain_line(&name),
            DriveRequest::CancelDrain { name } => self.0.cancel_drain(&name),
            DriveRequest::Use { name, partition } => self.0.use_drive(&name, partition.as_deref()),
        }
    }
}

impl Inner {
    fn attach(&self, entry: &DriveEntry, partition: PartitionId, store: &VolumeStore) -> Result<(), String> {
        let drive = entry.open(&self.env, partition)?;
        store.add_drive(DriveId(entry.id), drive).map_err(|error| error.to_string())?;
        let (store, id, name) = (store.clone(), DriveId(entry.id), entry.name.clone());
        self.env.spawn(Box::pin(async move {
            if let Err(error) = store.sweep_drive(id).await {
                tracing::warn!(drive = name, %error, "what an earlier crash left on a drive could not be freed");
            }
        }));
        Ok(())
    }

    /// Writes the registry, then shows it.
    fn keep(&self, registry: Registry) -> Result<(), DrivesError> {
        registry.write(&self.state)?;
        *self.registry.lock() = registry;
        Ok(())
    }

    async fn add(&self, name: &str, address: SocketAddr, key: &str) -> Result<DriveAnswer, DrivesError> {
        let join_key = JoinKey::parse(key)?;
        let mut registry = self.registry.lock().clone();
        let (entry, mut settings) = self.prepare(&mut registry, name, address, &join_key)?;
        // Before the drive gets the key: an attempt that is interrupted is made again with the same one.
        self.keep(registry.clone())?;
        let new = settings.key.bytes().ok_or_else(|| bad(&self.state, "a key is damaged"))?;
        let (security, new) = (Security::Tls(join_key.fingerprint), Secret::new(*new));
        let drive = afs_remote::join(&self.env, address, security, &join_key.secret, &new).await?;
        settings.drive = format!("{:032x}", drive.0);
        let entry = DriveEntry { kind: DriveKind::Remote(settings), ..entry };
        registry.set_kind(entry.id, entry.kind.clone());
        self.keep(registry)?;
        for (partition, store) in self.partitions.iter() {
            self.attach(&entry, partition, store).map_err(DrivesError::Store)?;
        }
        Ok(DriveAnswer::Done)
    }

    /// A new entry, or the one of an attempt that was interrupted.
    fn prepare(
        &self,
        registry: &mut Registry,
        name: &str,
        address: SocketAddr,
        key: &JoinKey,
    ) -> Result<(DriveEntry, RemoteSettings), DrivesError> {
        let fingerprint = key.fingerprint.to_string();
        let interrupted = registry.find(name).ok().and_then(|entry| match &entry.kind {
            DriveKind::Remote(settings)
                if settings.drive.is_empty() && settings.fingerprint == fingerprint =>
            {
                Some((entry.clone(), RemoteSettings { address, ..settings.clone() }))
            }
            DriveKind::Remote(_) => None,
        });
        if let Some(interrupted) = interrupted {
            return Ok(interrupted);
        }
        let key = KeyText::of(&self.env.random_bytes());
        let settings = RemoteSettings { address, fingerprint, drive: String::new(), key };
        let entry = registry.add(name, DriveKind::Remote(settings.clone()))?;
        Ok((entry, settings))
    }

    async fn list(&self) -> Vec<DriveLine> {
        let registry = self.registry.lock().clone();
        let mut lines = vec![self.line(LOCAL, DriveId::OWN, "disk", String::new())];
        for entry in registry.drives() {
            let DriveKind::Remote(settings) = &entry.kind;
            let mut line = self.line(&entry.name, DriveId(entry.id), "remote", settings.address.to_string());
            self.ask(&entry.name, settings, &mut line).await;
            lines.push(line);
        }
        lines
    }

    fn line(&self, name: &str, id: DriveId, kind: &str, at: String) -> DriveLine {
        let using = self.partitions.iter().filter(|(_, store)| store.drive_in_use() == id);
        let partitions = using.map(|(partition, _)| partition.to_string()).collect();
        let (name, kind) = (name.to_owned(), kind.to_owned());
        DriveLine {
            name,
            id: id.0,
            kind,
            at,
            partitions,
            free: None,
            total: None,
            problem: None,
            drain: self.drains.line(id),
        }
    }

    /// Asks a drive how it is.
    async fn ask(&self, name: &str, settings: &RemoteSettings, line: &mut DriveLine) {
        let Some((partition, _)) = self.partitions.iter().next() else { return };
        let status = match settings.open(&self.env, name, partition) {
            Ok(drive) => drive.status().await.map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        match status {
            Ok(status) => (line.free, line.total) = (Some(status.usage.free), Some(status.usage.total)),
            Err(why) => line.problem = Some(why),
        }
    }

    fn remove(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let id = DriveId(registry.find(name)?.id);
        for (partition, store) in self.partitions.iter() {
            let in_use = |why: String| DrivesError::InUse(name.to_owned(), format!("{partition}: {why}"));
            if store.drive_in_use() == id {
                return Err(in_use("new data go there".to_owned()));
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
        registry.remove(id.0);
        self.keep(registry)?;
        self.drains.cancel(id);
        Ok(DriveAnswer::Done)
    }

    fn drain(&self, name: &str, to: Option<&str>, rate: Option<u64>) -> Result<DriveAnswer, DrivesError> {
        let refused = |why: &str| Err(DrivesError::Drain(name.to_owned(), why.to_owned()));
        let (id, to) = (self.id(name)?, to.map(|to| self.id(to)).transpose()?);
        if self.partitions.iter().any(|(_, store)| store.drive_in_use() == id) {
            return refused("takes new data; let another drive take them first: andrew drive use NAME");
        }
        if to == Some(id) {
            return refused("cannot be drained to itself");
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

    fn use_drive(&self, name: &str, partition: Option<&str>) -> Result<DriveAnswer, DrivesError> {
        let (id, mut registry) = (self.id(name)?, self.registry.lock().clone());
        let chosen = partition
            .map(|text| text.parse::<PartitionId>().map_err(|_| DrivesError::NoPartition(text.to_owned())));
        let chosen = chosen.transpose()?;
        if let Some(id) = chosen.filter(|id| self.partitions.store(*id).is_none()) {
            return Err(DrivesError::NoPartition(id.to_string()));
        }
        if registry.draining().any(|(draining, _)| draining == id) {
            let why = format!("is drained; `andrew drive drain {name} --cancel` ends that");
            return Err(DrivesError::Drain(name.to_owned(), why));
        }
        let wanted = || self.partitions.iter().filter(|(id, _)| chosen.is_none_or(|chosen| chosen == *id));
        wanted().for_each(|(partition, _)| registry.set_in_use(partition, id));
        for (_, store) in wanted() {
            store.use_drive(id).map_err(|error| DrivesError::Store(error.to_string()))?;
        }
        self.keep(registry)?;
        Ok(DriveAnswer::Done)
    }

    fn id(&self, name: &str) -> Result<DriveId, DrivesError> {
        match name {
            LOCAL => Ok(DriveId::OWN),
            _ => Ok(DriveId(self.registry.lock().find(name)?.id)),
        }
    }
}

fn bad(state: &Path, why: &str) -> DrivesError {
    DrivesError::File { path: state.to_owned(), why: why.to_owned() }
}
