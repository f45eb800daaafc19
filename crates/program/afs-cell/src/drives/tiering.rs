//! Background tasks that move the old, large files of a volume to another drive, at a bounded rate.

use super::attached::Inner;
use super::{DriveAnswer, DrivesError, TierLine, TierRequest};
use afs_drive::DriveId;
use afs_env::{EnvExt, EnvRef};
use afs_server::Partitions;
use afs_volume::{Relocated, Relocation, VnodeRecord, VolumeError, VolumeStore};
use afs_wire::fs::FileKind;
use afs_wire::ids::{Fid, VnodeId, VolumeId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes copied a second: a quarter of a drain's, because nobody waits for it.
const RATE: u64 = 16 << 20;
/// Bytes of one step.
const STEP: u64 = 4 << 20;
/// Cost of reading a row, in bytes, besides the data.
const ROW_COST: u64 = 256;
/// Files whose records are read together.
const FILES: usize = 256;
/// Pause between two rounds.
const EVERY: Duration = Duration::from_secs(3600);
/// Pause after a round that failed, such as by a drive that is away.
const AFTER_ERROR: Duration = Duration::from_secs(600);

/// Which files of a volume are moved, and where, as the registry keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierOrder {
    /// The drive that takes them.
    pub drive: u32,
    /// Seconds since the last change, by the file server's clock.
    pub age: u64,
    /// Least length in bytes.
    pub length: u64,
}

/// The tiers of this process, by volume.
pub(super) struct Tiers {
    env: EnvRef,
    partitions: Partitions,
    running: Mutex<BTreeMap<VolumeId, Arc<Tier>>>,
}

/// One volume's.
struct Tier {
    volume: VolumeId,
    order: TierOrder,
    ended: AtomicBool,
    progress: Mutex<Progress>,
}

#[derive(Clone, Default)]
struct Progress {
    files: u64,
    bytes: u64,
    rounds: u64,
    problem: Option<String>,
}

impl Tiers {
    pub(super) fn new(env: &EnvRef, partitions: &Partitions) -> Self {
        Self { env: env.clone(), partitions: partitions.clone(), running: Mutex::default() }
    }

    /// Begins a first round now, in place of what was ordered before.
    pub(super) fn start(&self, volume: VolumeId, order: TierOrder) {
        self.end(volume);
        let tier = Tier { volume, order, ended: AtomicBool::new(false), progress: Mutex::default() };
        let tier = Arc::new(tier);
        self.running.lock().insert(volume, tier.clone());
        self.env.spawn(Box::pin(tier.run(self.env.clone(), self.partitions.clone())));
    }

    /// Ends it after its present step. What was moved stays where it is.
    pub(super) fn end(&self, volume: VolumeId) {
        if let Some(tier) = self.running.lock().remove(&volume) {
            tier.ended.store(true, Ordering::Relaxed);
        }
    }

    fn progress(&self, volume: VolumeId) -> Progress {
        self.running.lock().get(&volume).map(|tier| tier.progress.lock().clone()).unwrap_or_default()
    }
}

impl Tier {
    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    async fn run(self: Arc<Self>, env: EnvRef, partitions: Partitions) {
        while !self.is_ended() {
            let pause = match self.round(&env, &partitions).await {
                Ok(()) => {
                    let mut progress = self.progress.lock();
                    (progress.rounds, progress.problem) = (progress.rounds + 1, None);
                    EVERY
                }
                Err(error) => {
                    self.fails(&error);
                    AFTER_ERROR
                }
            };
            env.sleep(pause).await;
        }
    }

    /// Goes once through the files of the volume.
    async fn round(&self, env: &EnvRef, partitions: &Partitions) -> Result<(), VolumeError> {
        let found = partitions.iter().find_map(|(_, store)| Some((store, store.volume(self.volume)?)));
        let (store, volume) = found.ok_or(VolumeError::NoVolume)?;
        let mut after = VnodeId(0);
        loop {
            let (of, from) = (volume.clone(), after);
            let records = env.run_blocking(move || of.vnodes_after(false, from, FILES)).await;
            // Nothing is read any more when the server stops.
            let Ok(records) = records else { return Ok(()) };
            let records = records?;
            let Some(last) = records.last() else { return Ok(()) };
            after = last.vnode;
            let now = u64::from(env.wall().secs_u32());
            for record in records.iter().filter(|record| self.has(record, now)) {
                if self.is_ended() {
                    return Ok(());
                }
                self.move_file(env, store, record.fid(self.volume)).await?;
            }
        }
    }

    fn has(&self, record: &VnodeRecord, now: u64) -> bool {
        let age = now.saturating_sub(u64::from(record.server_mod_time.seconds().0));
        record.kind == FileKind::File && record.length >= self.order.length && age >= self.order.age
    }

    /// Moves what of a file is on other drives.
    async fn move_file(&self, env: &EnvRef, store: &VolumeStore, file: Fid) -> Result<(), VolumeError> {
        let mut relocation = Relocation::of_file(file, DriveId(self.order.drive));
        let mut chunks = 0;
        loop {
            let done = match store.relocate_step(&mut relocation, STEP).await {
                // It was removed meanwhile.
                Err(VolumeError::NoVnode) => return Ok(()),
                done => done?,
            };
            chunks += done.chunks;
            self.progress.lock().bytes += done.bytes;
            env.sleep(at_rate(&done)).await;
            if done.complete {
                self.progress.lock().files += u64::from(chunks > 0);
                return Ok(());
            }
        }
    }

    fn fails(&self, error: &VolumeError) {
        let problem = Some(error.to_string());
        let mut progress = self.progress.lock();
        if progress.problem != problem {
            tracing::warn!(volume = %self.volume, %error, "files of a volume that are to be moved to another drive wait");
            progress.problem = problem;
        }
    }
}

fn at_rate(done: &Relocated) -> Duration {
    let cost = u128::from(done.bytes + done.rows * ROW_COST);
    Duration::from_micros(u64::try_from(cost * 1_000_000 / u128::from(RATE)).unwrap_or(u64::MAX))
}

impl Inner {
    /// Has files of a volume moved, or tells how far that is.
    pub(super) fn tier(&self, volume: &str, order: Option<TierRequest>) -> Result<DriveAnswer, DrivesError> {
        let id = self.volume(volume)?;
        let mut registry = self.registry.lock().clone();
        if let Some(TierRequest { drive, age, length }) = order {
            let to = self.id(&drive)?;
            self.is_there(to)?;
            if registry.draining().any(|(draining, _)| draining == to) {
                return Err(DrivesError::Drain(drive, "is drained, and takes nothing".to_owned()));
            }
            let order = TierOrder { drive: to.0, age, length };
            registry.set_tier(id, Some(order));
            self.keep(registry.clone())?;
            self.tiers.start(id, order);
        }
        let order = registry.tiers().find(|(tiered, _)| *tiered == id).map(|(_, order)| order);
        let order = order.ok_or_else(|| DrivesError::NoTier(volume.to_owned()))?;
        let names = |id: u32| registry.drives().iter().find(|entry| entry.id == id);
        let drive = names(order.drive).map_or(super::registry::LOCAL, |entry| entry.name.as_str()).to_owned();
        let Progress { files, bytes, rounds, problem } = self.tiers.progress(id);
        let TierOrder { age, length, .. } = order;
        Ok(DriveAnswer::Tier(TierLine { volume: id.0, drive, age, length, files, bytes, rounds, problem }))
    }

    /// Has no more files of a volume moved.
    pub(super) fn end_tier(&self, volume: &str) -> Result<DriveAnswer, DrivesError> {
        let id = self.volume(volume)?;
        let mut registry = self.registry.lock().clone();
        registry.set_tier(id, None);
        self.keep(registry)?;
        self.tiers.end(id);
        Ok(DriveAnswer::Done)
    }

    /// A volume of this host, by its number or name. One that went elsewhere has its number.
    fn volume(&self, text: &str) -> Result<VolumeId, DrivesError> {
        let volumes = self.partitions.iter().flat_map(|(_, store)| store.volumes());
        let named = volumes.into_iter().find(|volume| volume.header().name.as_str() == text);
        let number = || text.parse().ok().map(VolumeId);
        named.map(|volume| volume.id()).or_else(number).ok_or_else(|| DrivesError::NoVolume(text.to_owned()))
    }
}
