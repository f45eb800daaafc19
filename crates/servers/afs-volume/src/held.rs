//! Handles of a drive: who has one may have chunks there that no row names yet, and the end of all that were given can be waited for.

use std::ops::Range;
use std::sync::Arc;

use afs_drive::{
    BoxFuture, ChunkId, ChunkRef, Drive, DriveError, LiveChunks, Returned, StagedChunks, SweepReport, Usage,
};
use afs_env::sync::oneshot;
use bytes::Bytes;

/// A drive of a store, and the handles of it.
pub(crate) struct Attached {
    drive: Arc<dyn Drive>,
    held: Arc<Held>,
    /// Completes when the last of the present handles is dropped.
    end: oneshot::Receiver<()>,
    /// Counts the handles of every time.
    times: Arc<()>,
}

/// What the handles of a time share.
struct Held {
    drive: Arc<dyn Drive>,
    _time: Arc<()>,
    /// Completes its receiver when it is dropped.
    _end: oneshot::Sender<()>,
}

impl Attached {
    pub fn new(drive: Arc<dyn Drive>) -> Self {
        let times = Arc::default();
        let (held, end) = held(&drive, &times);
        Self { drive, held, end, times }
    }

    /// A handle. Chunks that are written by it are discarded by it, or named by rows before it is dropped.
    pub fn handle(&self) -> Arc<dyn Drive> {
        self.held.clone()
    }

    /// Begins another time: what is returned completes when all handles are dropped that were given before, in either way.
    pub fn begin_time(&mut self) -> oneshot::Receiver<()> {
        let (held, end) = held(&self.drive, &self.times);
        self.held = held;
        std::mem::replace(&mut self.end, end)
    }

    /// Whether there are handles.
    pub fn is_held(&self) -> bool {
        // This value has one of the present handles, and a count of its own.
        Arc::strong_count(&self.held) > 1 || Arc::strong_count(&self.times) > 2
    }
}

fn held(drive: &Arc<dyn Drive>, times: &Arc<()>) -> (Arc<Held>, oneshot::Receiver<()>) {
    let (sender, receiver) = oneshot::channel();
    (Arc::new(Held { drive: drive.clone(), _time: times.clone(), _end: sender }), receiver)
}

impl Drive for Held {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        self.drive.write(data)
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        self.drive.read(chunk, range)
    }

    fn sync(&self, written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        self.drive.sync(written)
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        self.drive.discard(chunks)
    }

    fn takes_staged(&self) -> BoxFuture<bool> {
        self.drive.takes_staged()
    }

    fn claim(&self, staged: StagedChunks) -> BoxFuture<Result<(), DriveError>> {
        self.drive.claim(staged)
    }

    fn continue_after(&self, last: ChunkId) {
        self.drive.continue_after(last);
    }

    fn on_return(&self, told: Returned) {
        self.drive.on_return(told);
    }

    fn usage(&self) -> Result<Usage, DriveError> {
        self.drive.usage()
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.drive.sweep(live)
    }

    fn sweep_left(
        &self,
        live: Arc<dyn LiveChunks>,
        settled: BoxFuture<Result<(), DriveError>>,
    ) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.drive.sweep_left(live, settled)
    }
}
