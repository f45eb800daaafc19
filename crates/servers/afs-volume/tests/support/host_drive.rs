//! A drive on another host: it is away, late, or full, and a power failure of its host loses what it had not flushed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use afs_drive::{
    BoxFuture, ChunkId, ChunkRef, Drive, DriveError, LiveChunks, Returned, SegmentDrive, SweepReport, Usage,
};
use afs_env::Parts;
use afs_sim::crash::{CrashDisk, CrashSegments, Rng};
use bytes::Bytes;
use std::sync::{Mutex, MutexGuard};

/// The host. Clones are the same.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    run: Mutex<Run>,
    away: AtomicBool,
    late: AtomicBool,
    told: Mutex<Option<Returned>>,
}

/// From one start of the drive to the next.
struct Run {
    disk: CrashDisk,
    drive: SegmentDrive<CrashSegments>,
}

impl Run {
    /// A drive gives no id twice, whatever it has lost.
    fn start(disk: CrashDisk, after: Option<ChunkId>) -> Self {
        let drive = SegmentDrive::open(CrashSegments(disk.clone()), Parts::inline(), 4 << 20).unwrap();
        after.into_iter().for_each(|mark| drive.continue_after(mark));
        Self { disk, drive }
    }
}

impl Host {
    pub fn new() -> Self {
        Self::on(CrashDisk::new(), None)
    }

    fn on(disk: CrashDisk, after: Option<ChunkId>) -> Self {
        let run = Mutex::new(Run::start(disk, after));
        let (away, late) = (AtomicBool::new(false), AtomicBool::new(false));
        Self(Arc::new(Inner { run, away, late, told: Mutex::default() }))
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.0.run.lock().unwrap()
    }

    /// The drive as a file server uses it whose power is that of a disk: without it nothing is asked of the host any more.
    pub fn drive(&self, power: &CrashDisk) -> Arc<dyn Drive> {
        Arc::new(HostDrive { host: self.clone(), power: power.clone() })
    }

    /// Whether it answers.
    pub fn set_away(&self, is_away: bool) {
        self.0.away.store(is_away, Ordering::Relaxed);
    }

    /// It is there again, and its file server has seen that.
    pub fn is_seen_back(&self) {
        self.set_away(false);
        let told = self.0.told.lock().unwrap().clone();
        told.unwrap()();
    }

    pub fn is_away(&self) -> bool {
        self.0.away.load(Ordering::Relaxed)
    }

    /// Whether flushes that have begun do not end.
    pub fn set_late(&self, is_late: bool) {
        self.0.late.store(is_late, Ordering::Relaxed);
    }

    pub fn disk(&self) -> CrashDisk {
        self.run().disk.clone()
    }

    /// A power failure, and the next start.
    pub fn crash(&self, rng: &mut Rng) {
        let mut run = self.run();
        let mark = run.drive.mark();
        let disk = run.disk.image(rng);
        *run = Run::start(disk, Some(mark));
    }

    /// What the host is after a power failure at this instant.
    pub fn image(&self, rng: &mut Rng) -> Self {
        let run = self.run();
        Self::on(run.disk.image(rng), Some(run.drive.mark()))
    }
}

struct HostDrive {
    host: Host,
    power: CrashDisk,
}

impl HostDrive {
    fn here<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SegmentDrive<CrashSegments>) -> BoxFuture<Result<T, DriveError>>,
    ) -> BoxFuture<Result<T, DriveError>> {
        if self.power.is_dead() {
            return Box::pin(async { Err(DriveError::Closed) });
        }
        if self.host.is_away() {
            let away = DriveError::Away { drive: "far".into(), why: "test".into() };
            return Box::pin(async move { Err(away) });
        }
        let drive = self.host.run().drive.clone();
        work(&drive)
    }
}

impl Drive for HostDrive {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        self.here(|drive| drive.write(data))
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        self.here(|drive| drive.read(chunk, range))
    }

    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        assert!(!written.is_empty(), "the chunks are named");
        let (oldest, host) = (written.iter().map(|chunk| chunk.id).min().unwrap(), self.host.clone());
        self.here(move |drive| {
            if !drive.is_of_this_run(oldest) {
                return Box::pin(async { Err(DriveError::Forgotten) });
            }
            let mut flush = drive.sync(&[]);
            Box::pin(std::future::poll_fn(move |context| match host.0.late.load(Ordering::Relaxed) {
                true => Poll::Pending,
                false => flush.as_mut().poll(context),
            }))
        })
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        self.here(|drive| drive.discard(chunks))
    }

    fn continue_after(&self, last: ChunkId) {
        self.host.run().drive.continue_after(last);
    }

    fn on_return(&self, told: Returned) {
        *self.host.0.told.lock().unwrap() = Some(told);
    }

    fn usage(&self) -> Result<Usage, DriveError> {
        self.host.run().drive.usage()
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.here(|drive| drive.sweep(live))
    }

    /// As if some operation had got no answer.
    fn sweep_left(
        &self,
        live: Arc<dyn LiveChunks>,
        settled: BoxFuture<Result<(), DriveError>>,
    ) -> BoxFuture<Result<SweepReport, DriveError>> {
        let drive = self.host.run().drive.clone();
        Box::pin(async move {
            let mark = drive.mark();
            settled.await?;
            let mut report = SweepReport::default();
            for (first, last) in drive.ranges_before(mark).await? {
                let swept = drive.sweep_range((first, last), live.live_between(first, last)?).await?;
                report.live += swept.live;
            }
            Ok(report)
        })
    }
}
