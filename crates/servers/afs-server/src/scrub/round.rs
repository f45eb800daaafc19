//! Scrub rounds of one partition.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef};
use afs_volume::{BadData, BadPart, ScrubRound, ScrubState, VolumeError, VolumeStore};
use afs_wire::ids::{PartitionId, UnixSeconds};

use crate::partitions::Partitions;

use super::{Replicas, ScrubReport, Scrubber};

/// Bytes per step.
const STEP: u64 = 4 << 20;
/// Cost of reading a vnode's record, in bytes, besides its data.
const VNODE_COST: u64 = 4096;
/// Bytes after which the position is saved, so that a restart repeats little.
const KEEP_AFTER: u64 = 256 << 20;
/// Longest sleep, because the clock may be set meanwhile.
const SLEEP_MAX: Duration = Duration::from_secs(3600);
/// Pause after a failed step.
const AFTER_ERROR: Duration = Duration::from_secs(600);

/// What was not dealt with yet.
#[derive(Default)]
struct Since {
    /// Cost since the position was saved.
    unkept: u64,
    /// Chunks that the round passed over, on drives that could not be reached.
    unread: u64,
}

pub(super) struct Rounds {
    pub(super) env: EnvRef,
    pub(super) partition: PartitionId,
    pub(super) partitions: Partitions,
    pub(super) store: VolumeStore,
    pub(super) replicas: Option<Arc<Replicas>>,
    pub(super) scrubber: Scrubber,
}

impl Rounds {
    pub(super) async fn run(self) {
        let mut state = self.store.scrub_state().unwrap_or_default();
        let (mut since, mut pause) = (Since::default(), self.scrubber.settings.delay);
        self.tell(&state);
        loop {
            self.env.sleep(pause).await;
            pause = match self.until_due(&state) {
                Some(wait) => wait,
                None => match self.step(&mut state, &mut since).await {
                    Ok(cost) => self.at_rate(cost),
                    Err(error) => {
                        tracing::warn!(partition = %self.partition, %error, "the scrub has to wait");
                        AFTER_ERROR
                    }
                },
            };
        }
    }

    /// Time until the next round is due; `None` during a round.
    fn until_due(&self, state: &ScrubState) -> Option<Duration> {
        if state.now.began.0 != 0 || state.last.ended.0 == 0 {
            return None;
        }
        let since = Duration::from_secs(self.wall().0.saturating_sub(state.last.ended.0).into());
        let wait = self.scrubber.settings.every.saturating_sub(since);
        (!wait.is_zero()).then(|| wait.min(SLEEP_MAX))
    }

    fn at_rate(&self, cost: u64) -> Duration {
        let micros = u128::from(cost) * 1_000_000 / u128::from(self.scrubber.settings.rate.max(1));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).min(SLEEP_MAX)
    }

    /// Reads some data, repairs damage where it can, and returns the cost.
    async fn step(&self, state: &mut ScrubState, since: &mut Since) -> Result<u64, VolumeError> {
        if state.now.began.0 == 0 {
            state.now.began = self.wall();
            // What can be read is served, and read on: it is for the administrator to end that.
            if let Err(error) = self.store.verify_index().await {
                self.partitions.fails(self.partition, &error);
            }
        }
        let report = self.store.scrub_step(&mut state.position, STEP).await?;
        state.now.bytes += report.bytes;
        for bad in report.bad {
            state.now.bad += 1;
            state.now.repaired += u64::from(self.mend(bad).await);
        }
        let cost = report.bytes + report.vnodes * VNODE_COST;
        since.unkept += cost;
        since.unread += report.unread;
        if report.complete {
            self.complete(state, std::mem::take(&mut since.unread));
        }
        if report.complete || since.unkept >= KEEP_AFTER {
            self.store.keep_scrub(state).await?;
            since.unkept = 0;
        }
        self.tell(state);
        Ok(cost)
    }

    fn complete(&self, state: &mut ScrubState, unread: u64) {
        state.last = ScrubRound { ended: self.wall(), ..std::mem::take(&mut state.now) };
        let ScrubRound { bytes, bad, repaired, .. } = state.last;
        tracing::info!(partition = %self.partition, bytes, bad, repaired, unread, "a round of the scrub is complete");
        if bad == repaired && unread == 0 {
            self.report(|report| report.damaged.clear());
        }
    }

    /// Repairs a damage; returns whether the data is sound now.
    async fn mend(&self, bad: BadData) -> bool {
        let what = Shown(&bad);
        match self.repair(&bad).await {
            Ok(source) => {
                tracing::warn!(partition = %self.partition, "{what}; it was repaired from {source}");
                true
            }
            Err(why) => {
                tracing::error!(partition = %self.partition, "{what}; it cannot be repaired: {why}");
                self.report(|report| report.note(bad));
                false
            }
        }
    }

    /// Repairs a damage; returns where the sound bytes were.
    async fn repair(&self, bad: &BadData) -> Result<&'static str, String> {
        if !matches!(bad.part, BadPart::Chunk { .. }) {
            return Err("restore the volume from a snapshot or a dump".into());
        }
        if self.store.repair_from_copy(bad).await.is_ok() {
            return Ok("a copy on another drive");
        }
        let Some(replicas) = &self.replicas else { return Err("no other server is known".into()) };
        let parent = self.store.volume(bad.volume).map_or(bad.volume, |volume| volume.header().parent);
        let sources = replicas.sources(parent).await.map_err(|error| error.to_string())?;
        let mut why = "no replica has this version of the file".to_owned();
        for source in sources {
            let bytes = match replicas.read(source, bad).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::debug!(server = %source.server, volume = %source.volume, %error, "no sound bytes there");
                    continue;
                }
            };
            match self.store.repair(bad, bytes).await {
                Ok(()) => return Ok("a replica"),
                Err(error) => why = format!("what {} has does not do: {error}", source.server),
            }
        }
        Err(why)
    }

    fn tell(&self, state: &ScrubState) {
        self.report(|report| (report.now, report.last) = (state.now, state.last));
    }

    fn report(&self, change: impl FnOnce(&mut ScrubReport)) {
        change(self.scrubber.lock().entry(self.partition).or_default());
    }

    fn wall(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }
}

/// Display of a damage in the log.
struct Shown<'a>(&'a BadData);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BadData { volume, vnode, unique, .. } = self.0;
        write!(f, "volume {volume}, file {}.{}: {}", vnode.0, unique.0, self.0.part)
    }
}
