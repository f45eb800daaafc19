//! The drive: chunks appended to segments, with group flush.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use afs_env::sync::oneshot;
use afs_env::{EnvExt, EnvRef, Parts};

use crate::chunk::{ChunkId, ChunkRef, MAX_CHUNK_LEN};
use crate::drive::{BoxFuture, Drive, LiveChunks, SweepReport, Usage};
use crate::error::DriveError;
use crate::file_segments::FileSegments;
use crate::header::{self, data_start, footprint};
use crate::memory_segments::MemorySegments;
use crate::pieces::Pieces;
use crate::segment_store::SegmentStore;
use crate::segments::Segments;
use crate::sweep;
use crate::unclaimed::Unclaimed;
use crate::unfreed::{self, Left};

/// A drive whose segments are files of a directory.
pub type FileDrive = SegmentDrive<FileSegments>;

/// A drive in memory.
pub type MemoryDrive = SegmentDrive<MemorySegments>;

/// A drive over segments. Clones are handles of the same drive.
pub struct SegmentDrive<S>(Arc<Inner<S>>);

impl<S> Clone for SegmentDrive<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

pub(crate) struct Inner<S> {
    pub(crate) store: S,
    pub(crate) segments: Mutex<Segments>,
    env: EnvRef,
}

impl<S> Inner<S> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock()
    }

    /// Begins to discard a chunk or to sweep its segment, if that may be done now.
    fn begin(
        &self,
        id: ChunkId,
        begin: fn(&mut Segments, ChunkId) -> bool,
        end: fn(&mut Segments, ChunkId),
    ) -> Result<Turn<'_>, DriveError> {
        let may_begin = begin(&mut self.lock(), id);
        may_begin.then_some(Turn { segments: &self.segments, id, end }).ok_or(DriveError::Busy)
    }
}

/// An operation on a chunk or its segment, until this is dropped.
struct Turn<'d> {
    segments: &'d Mutex<Segments>,
    id: ChunkId,
    end: fn(&mut Segments, ChunkId),
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        (self.end)(&mut self.segments.lock(), self.id);
    }
}

impl FileDrive {
    /// Opens a drive in a directory, creating it (one level) if it does not exist. `env` provides the blocking
    /// threads.
    pub fn open_directory(path: impl Into<PathBuf>, env: EnvRef) -> io::Result<Self> {
        Self::open(FileSegments::open(path)?, env, SEGMENT_BYTES)
    }
}

impl MemoryDrive {
    /// An empty drive with room for `capacity` bytes.
    pub fn in_memory(capacity: u64) -> Self {
        let segments = Segments::new(&[], SEGMENT_BYTES);
        Self::with(MemorySegments::new(capacity), segments, Parts::inline())
    }
}

impl<S: SegmentStore> SegmentDrive<S> {
    /// Opens a drive over any segment store; a segment ends at `segment_bytes` (usually 1 GiB).
    pub fn open(store: S, env: EnvRef, segment_bytes: u64) -> io::Result<Self> {
        let segments = Segments::new(&store.list()?, segment_bytes);
        Ok(Self::with(store, segments, env))
    }

    fn with(store: S, segments: Segments, env: EnvRef) -> Self {
        Self(Arc::new(Inner { store, segments: Mutex::new(segments), env }))
    }

    /// The segment store.
    pub fn store(&self) -> &S {
        &self.0.store
    }

    /// The pieces of a chunk in which a range lies, verified, with the checksums of all its pieces: for who verifies them
    /// again at the other end of a network.
    pub fn read_pieces(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Pieces, DriveError>> {
        self.blocking(move |drive| {
            let pieces = drive.read(chunk, &range);
            let checked = pieces.and_then(|pieces| pieces.check(chunk, &range).map(|()| pieces));
            checked.inspect_err(|error| drive.tell(chunk, error))
        })
    }

    /// An id that is greater than those of all chunks so far, and not greater than those of later ones.
    pub fn mark(&self) -> ChunkId {
        ChunkId::from_parts(self.0.lock().begin_segment(), 0)
    }

    /// Whether a chunk with this id would be of this run of the drive: written since it was opened.
    pub fn is_of_this_run(&self, id: ChunkId) -> bool {
        id.parts().0 >= self.0.lock().first()
    }

    /// Whether a flush has failed, so that nothing is written or flushed any more: what the medium still has of what was not durable is
    /// not known. What reads, frees and sweeps goes on.
    pub fn needs_reopen(&self) -> bool {
        self.0.lock().flush.needs_reopen
    }

    /// The chunks whose space could not be freed yet. Who opens the segments again discards them once more.
    pub fn unfreed(&self) -> Vec<ChunkRef> {
        self.0.lock().unfreed.all()
    }

    /// Ranges of ids, each from the first to the second, that together have all chunks before a mark.
    pub fn ranges_before(&self, mark: ChunkId) -> BoxFuture<Result<Vec<(ChunkId, ChunkId)>, DriveError>> {
        self.blocking(move |drive| {
            let segments = drive.store.list()?.into_iter();
            Ok(segments.filter(|segment| *segment < mark.parts().0).map(sweep::ids_of).collect())
        })
    }

    /// Frees all chunks of a range from [`SegmentDrive::ranges_before`] but the `live` ones, which are in order.
    ///
    /// # Errors
    /// [`DriveError::Length`] if it is no such range, is still written to, or a live chunk is not in it; [`DriveError::Busy`] while a
    /// chunk of it is being written or discarded: the count of its live bytes would be wrong afterwards.
    pub fn sweep_range(
        &self,
        (first, last): (ChunkId, ChunkId),
        live: Vec<ChunkRef>,
    ) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.blocking(move |drive| {
            let segment = first.parts().0;
            let is_written = segment >= drive.lock().current();
            let all_in_it = live.iter().all(|chunk| (first..=last).contains(&chunk.id));
            if (first, last) != sweep::ids_of(segment) || is_written || !all_in_it || !live.is_sorted() {
                return Err(DriveError::Length { len: live.len() as u64 });
            }
            let _turn = drive.begin(first, Segments::begin_sweep, Segments::end_sweep)?;
            let mut report = SweepReport::default();
            sweep::sweep_segment(drive, segment, &live, &mut report)?;
            Ok(report)
        })
    }

    /// Runs work on a blocking thread, and returns its value.
    pub(crate) fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Inner<S>>) -> Result<T, DriveError> + Send + 'static,
    ) -> BoxFuture<Result<T, DriveError>> {
        let (sender, receiver) = oneshot::channel();
        let inner = self.0.clone();
        self.0.env.blocking(Box::new(move || _ = sender.send(work(&inner))));
        Box::pin(async move { receiver.await.unwrap_or(Err(DriveError::Closed)) })
    }
}

impl<S: SegmentStore> Drive for SegmentDrive<S> {
    fn write(&self, data: Bytes) -> BoxFuture<Result<ChunkRef, DriveError>> {
        let drive = self.clone();
        let written = self.blocking(move |inner| Ok(Unclaimed::new(inner.write(&data)?, drive)));
        Box::pin(async move { written.await?.claim() })
    }

    fn read(&self, chunk: ChunkRef, range: Range<u32>) -> BoxFuture<Result<Bytes, DriveError>> {
        self.blocking(move |drive| {
            let read = drive.read(chunk, &range).and_then(|pieces| pieces.verified(chunk, range));
            read.inspect_err(|error| drive.tell(chunk, error))
        })
    }

    fn sync(&self, _written: &[ChunkRef]) -> BoxFuture<Result<(), DriveError>> {
        let (sender, receiver) = oneshot::channel();
        let idle = {
            let mut segments = self.0.lock();
            segments.flush.waiting.push(sender);
            !std::mem::replace(&mut segments.flush.running, true)
        };
        if idle {
            let inner = self.0.clone();
            self.0.env.blocking(Box::new(move || inner.flush()));
        }
        Box::pin(async move { receiver.await.unwrap_or(Err(DriveError::Closed)) })
    }

    fn discard(&self, chunks: Vec<ChunkRef>) -> BoxFuture<Result<(), DriveError>> {
        // One that cannot be discarded now keeps no other.
        self.blocking(move |drive| {
            chunks.into_iter().map(|chunk| drive.discard(chunk)).fold(Ok(()), Result::and)
        })
    }

    fn continue_after(&self, last: ChunkId) {
        self.0.lock().continue_after(last.parts().0);
    }

    fn usage(&self) -> Result<Usage, DriveError> {
        Ok(self.0.store.usage()?)
    }

    fn sweep(&self, live: Arc<dyn LiveChunks>) -> BoxFuture<Result<SweepReport, DriveError>> {
        self.blocking(move |drive| sweep::sweep(drive, live.as_ref()))
    }
}

impl<S: SegmentStore> Inner<S> {
    fn write(self: &Arc<Self>, data: &[u8]) -> Result<ChunkRef, DriveError> {
        if data.is_empty() || data.len() > MAX_CHUNK_LEN {
            return Err(DriveError::Length { len: data.len() as u64 });
        }
        let len = data.len() as u32;
        let sums = header::piece_sums(data);
        let id = {
            let mut segments = self.lock();
            if segments.flush.needs_reopen {
                return Err(DriveError::NeedsReopen);
            }
            segments.allocate(len)
        };
        let chunk = ChunkRef { id, len, crc: header::combined(&sums, data.len()) };
        let (segment, offset) = id.parts();
        let _turn = Turn { segments: &self.segments, id, end: Segments::end_write };
        let written = self
            .store
            .write_at(segment, offset, &header::encode(chunk, &sums))
            .and_then(|()| self.store.write_at(segment, offset + data_start(len), data));
        if let Err(error) = written {
            if self.free(chunk).is_err() {
                self.free_later(chunk, Left::Part);
            }
            return Err(error.into());
        }
        self.lock().flush.dirty.insert(segment);
        Ok(chunk)
    }

    /// The pieces of a chunk in which a range lies, not compared with their checksums.
    fn read(&self, chunk: ChunkRef, range: &Range<u32>) -> Result<Pieces, DriveError> {
        let whole = Pieces::covering(chunk.len, range)?;
        let (segment, offset) = chunk.id.parts();
        let mut head = vec![0; data_start(chunk.len) as usize];
        self.read_part(chunk, segment, offset, &mut head)?;
        let sums = header::decode(&head, chunk).ok_or(DriveError::Damaged { chunk: chunk.id })?;
        let mut data = vec![0; whole.len()];
        self.read_part(chunk, segment, offset + data_start(chunk.len) + u64::from(whole.start), &mut data)?;
        Ok(Pieces { sums, bytes: data.into() })
    }

    /// Reads all of a chunk, and compares it with its checksums.
    pub(crate) fn verify(&self, chunk: ChunkRef) -> Result<(), DriveError> {
        let all = 0..chunk.len;
        self.read(chunk, &all)?.check(chunk, &all)
    }

    /// Names the file of a chunk that cannot be read in the log.
    fn tell(&self, chunk: ChunkRef, error: &DriveError) {
        if matches!(error, DriveError::Damaged { .. } | DriveError::Unreadable { .. }) {
            tracing::error!(%error, "{} has lost data of a file", self.store.place(chunk.id.parts().0));
        }
    }

    fn read_part(
        &self,
        chunk: ChunkRef,
        segment: u64,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), DriveError> {
        self.store
            .read_at(segment, offset, out)
            .map_err(|error| DriveError::Unreadable { chunk: chunk.id, error: Arc::new(error) })
    }

    /// Frees a chunk unless it was freed before. If the medium fails, that is tried again, whether or not who discards it does so too.
    fn discard(self: &Arc<Self>, chunk: ChunkRef) -> Result<(), DriveError> {
        let _turn = self.begin(chunk.id, Segments::begin_discard, Segments::end_discard)?;
        self.free_whole(chunk).inspect_err(|_| self.free_later(chunk, Left::Whole))
    }

    /// Frees a chunk whose header is there: a hole reads as zeros.
    fn free_whole(&self, chunk: ChunkRef) -> Result<(), DriveError> {
        let (segment, offset) = chunk.id.parts();
        let mut head = vec![0; data_start(chunk.len) as usize];
        match self.store.read_at(segment, offset, &mut head) {
            Ok(()) if header::decode(&head, chunk).is_some() => self.free(chunk),
            Ok(()) => Ok(()),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Ok(()),
                _ => Err(error.into()),
            },
        }
    }

    fn free_later(self: &Arc<Self>, chunk: ChunkRef, left: Left) {
        if !self.lock().unfreed.keep(chunk, left) {
            return;
        }
        tracing::warn!(chunk = %chunk.id, "the space of a chunk cannot be freed; it is tried again each minute");
        let (env, inner) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            let mut goes_on = true;
            while goes_on {
                env.sleep(unfreed::PAUSE).await;
                let Some(inner) = inner.upgrade() else { return };
                goes_on = env.run_blocking(move || inner.free_again()).await.unwrap_or(false);
            }
        }));
    }

    /// Frees what could not be freed before. Returns whether something is left.
    fn free_again(&self) -> bool {
        let chunks = self.lock().unfreed.all();
        for chunk in chunks {
            let Ok(_turn) = self.begin(chunk.id, Segments::begin_discard, Segments::end_discard) else {
                continue;
            };
            // A sweep may have freed it, and counted what is there without it.
            let left = self.lock().unfreed.get(chunk);
            let freed = match left {
                None => continue,
                Some(Left::Whole) => self.free_whole(chunk),
                Some(Left::Part) => self.free(chunk),
            };
            if freed.is_ok() {
                self.lock().unfreed.remove(chunk);
            }
        }
        !self.lock().unfreed.ends()
    }

    fn free(&self, chunk: ChunkRef) -> Result<(), DriveError> {
        let (segment, offset) = chunk.id.parts();
        match self.store.punch(segment, offset, footprint(chunk.len)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let dead = self.lock().release(segment, chunk.len);
        if dead {
            self.store.remove(segment)?;
        }
        Ok(())
    }

    /// Flushes for all waiting calls, until none is left.
    fn flush(&self) {
        loop {
            let (dirty, waiting, needs_reopen) = {
                let mut segments = self.lock();
                if segments.flush.waiting.is_empty() {
                    segments.flush.running = false;
                    return;
                }
                let flush = &mut segments.flush;
                (std::mem::take(&mut flush.dirty), std::mem::take(&mut flush.waiting), flush.needs_reopen)
            };
            let result =
                if needs_reopen { Err(DriveError::NeedsReopen) } else { self.flush_segments(&dirty) };
            if result.is_err() {
                self.lock().flush.needs_reopen = true;
            }
            for waiter in waiting {
                _ = waiter.send(result.clone());
            }
            // What waited for this flush must not wait for the next one.
            self.env.release_woken();
        }
    }

    fn flush_segments(&self, dirty: &std::collections::BTreeSet<u64>) -> Result<(), DriveError> {
        for segment in dirty {
            match self.store.sync(*segment) {
                // Every chunk of it was discarded meanwhile, so that no flush is needed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        Ok(())
    }
}

const SEGMENT_BYTES: u64 = 1 << 30;

#[cfg(test)]
#[path = "segment_drive_tests.rs"]
pub(crate) mod tests;
