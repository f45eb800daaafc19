//! Garbage collection of packs after a crash, by a listing page by page.

use std::sync::Arc;

use afs_drive::{ChunkId, ChunkRef, DriveError, LiveChunks, SweepReport};
use afs_env::EnvExt;

use crate::bucket::{Failure, Listed};
use crate::drive::Inner;
use crate::listing::Listing;
use crate::names::{PACKS, PackId};
use crate::pack::record_end;
use crate::requests::Failed;

/// Missing chunks that are reported.
const MISSING_MAX: usize = 1000;

/// A sweep in progress.
struct Sweep<'a> {
    drive: &'a Inner,
    live: Arc<dyn LiveChunks>,
    /// The first pack of this run, which is not touched.
    end: PackId,
    /// The first pack that was not looked at yet.
    next: PackId,
    /// Whether an object was listed that is no pack.
    has_strangers: bool,
    report: SweepReport,
}

impl Inner {
    /// Goes through the packs of earlier runs, deletes those without a live chunk, and counts the live chunks of the others.
    ///
    /// A pack that a late listing does not show is looked for if it has live chunks, and is found by the next sweep if not.
    /// Memory: the listing's page, the live chunks of one pack, and those of packs which the listing does not show.
    pub(crate) async fn sweep(&self, live: Arc<dyn LiveChunks>) -> Result<SweepReport, DriveError> {
        let run = self.claim_run().await?;
        self.remove_runs_before(run).await?;
        // Those of a page have to find a place among them.
        self.remove_doomed().await?;
        let report = SweepReport::default();
        let (end, next) = (run.first_pack(), PackId(0));
        let mut sweep = Sweep { drive: self, live, end, next, has_strangers: false, report };
        let mut listing = Listing::new(&self.requests, PACKS);
        while let Some(page) = listing.next().await? {
            for listed in &page.objects {
                sweep.listed(listed).await?;
            }
            self.remove_doomed().await?;
        }
        sweep.not_listed_before(sweep.end).await?;
        Ok(sweep.report)
    }
}

impl Sweep<'_> {
    async fn listed(&mut self, listed: &Listed) -> Result<(), DriveError> {
        let Some(pack) = PackId::of_key(&listed.key) else {
            if !self.has_strangers {
                tracing::warn!(
                    key = listed.key,
                    "an object among the packs of a drive is none; others are not named"
                );
                self.has_strangers = true;
            }
            return Ok(());
        };
        if pack < self.next || pack >= self.end {
            return Ok(());
        }
        self.not_listed_before(pack).await?;
        self.next = PackId(pack.0 + 1);
        self.pack(pack, Some(listed.len)).await
    }

    /// Counts the live chunks of a pack, and dooms it if there are none.
    async fn pack(&mut self, pack: PackId, len: Option<u64>) -> Result<(), DriveError> {
        self.report.segments += 1;
        self.drive.packs.lock().tally.begin_sweep(pack);
        let (first, last) = pack.chunks();
        let live = self.live_between(first, last).await?;
        let is_dead = {
            let mut packs = self.drive.packs.lock();
            let is_dead = packs.tally.end_sweep(pack, &live);
            if is_dead {
                packs.doom(pack);
            }
            is_dead
        };
        if is_dead {
            self.report.removed += 1;
            return Ok(());
        }
        let end = |chunk: &ChunkRef| {
            u32::try_from(chunk.id.parts().1).map_or(u64::MAX, |at| record_end(at, chunk.len))
        };
        self.count(&live, |chunk| len.is_some_and(|len| end(chunk) > len));
        Ok(())
    }

    fn count(&mut self, live: &[ChunkRef], is_missing: impl Fn(&ChunkRef) -> bool) {
        self.report.live += live.len() as u64;
        let left = MISSING_MAX - self.report.missing.len();
        let missing = live.iter().filter(|chunk| is_missing(chunk)).map(|chunk| chunk.id);
        self.report.missing.extend(missing.take(left));
    }

    /// Looks for packs that the listing does not show before `end`, and that have live chunks.
    async fn not_listed_before(&mut self, end: PackId) -> Result<(), DriveError> {
        if self.next >= end {
            return Ok(());
        }
        let (first, _) = self.next.chunks();
        let (_, last) = PackId(end.0 - 1).chunks();
        let live = self.live_between(first, last).await?;
        for chunks in live.chunk_by(|one, next| PackId::of(one.id) == PackId::of(next.id)) {
            let Some(pack) = chunks.first().map(|chunk| PackId::of(chunk.id)) else { continue };
            match self.drive.requests.get(&pack.key(), 0..1).await {
                Ok(_) => self.pack(pack, None).await?,
                Err(Failed { failure: Failure::Missing, .. }) => self.count(chunks, |_| true),
                Err(failed) => return Err(failed.into()),
            }
        }
        Ok(())
    }

    async fn live_between(&self, first: ChunkId, last: ChunkId) -> Result<Vec<ChunkRef>, DriveError> {
        let live = self.live.clone();
        let found = self.drive.env.run_blocking(move || live.live_between(first, last)).await;
        found.unwrap_or(Err(DriveError::Closed))
    }
}
