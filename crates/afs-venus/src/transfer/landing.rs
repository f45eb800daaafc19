//! A cache file as a sink.

use std::ops::Range;
use std::sync::Arc;

use afs_rpc::Stall;
use bytes::Bytes;

use crate::cache::{Ranges, Work, Worker};
use crate::data::FileData;
use crate::error::{ErrorKind, VenusError};
use crate::transfer::Sink;
use crate::transfer::arriving::{Arriving, Step};

/// What came of the bytes that were asked for.
pub(crate) struct Came {
    /// How many, from the first on.
    pub length: u64,
    /// Which of them were zeros that take no room.
    pub holes: Ranges,
}

/// One range of a file, on its way to the cache. That its bytes are here is for its user to note, when all of them are.
pub(crate) struct Landing<'a> {
    worker: &'a Worker,
    data: &'a Arc<FileData>,
    range: Range<u64>,
    arriving: Arriving,
    came: Came,
}

impl<'a> Landing<'a> {
    pub fn new(worker: &'a Worker, data: &'a Arc<FileData>, range: Range<u64>) -> Self {
        let (arriving, came) = (Arriving::at(range.start), Came { length: 0, holes: Ranges::new() });
        Landing { worker, data, range, arriving, came }
    }

    pub fn came(self) -> Came {
        self.came
    }

    fn put_down(&mut self, steps: Vec<Step>) -> Work<()> {
        if steps.is_empty() {
            return Work::done(Ok(()));
        }
        for step in &steps {
            if let Step::Hole(hole) = step {
                self.came.holes.insert(hole.clone());
            }
        }
        self.data.forget_mark();
        let data = self.data.clone();
        self.worker.run(Stall::Any, move || {
            steps.into_iter().try_for_each(|step| match step {
                Step::Write(at, bytes) => data.file.write_at(at, &bytes),
                // An earlier version may have left bytes there.
                Step::Hole(hole) => data.file.zero(hole.start, hole.end - hole.start),
            })
        })
    }
}

impl Sink for Landing<'_> {
    fn begin(&mut self, _: u64) {
        *self = Landing::new(self.worker, self.data, self.range.clone());
    }

    fn put(&mut self, parts: Vec<Bytes>) -> Work<()> {
        self.came.length += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if self.came.length > self.range.end - self.range.start {
            return Work::done(Err(VenusError::new(ErrorKind::Protocol, "FetchData")));
        }
        let steps = self.arriving.take(parts);
        self.put_down(steps)
    }

    fn end(&mut self) -> Work<()> {
        let last = self.arriving.end().into_iter().collect();
        self.put_down(last)
    }
}
