//! Simulated user who replaces, amends and reads the contents of files.

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_venus::{HandleId, NodeId, OpenFlags, SetAttr, VenusError};
use bytes::Bytes;

use super::user::User;
use crate::model::register::Time;

type Outcome = Result<(), VenusError>;

impl User {
    /// Works on the files, whatever the outcome of each operation.
    pub async fn edit(self, files: Vec<String>, steps: u32, think: Duration, mut rng: SimRng) {
        for _ in 0..steps {
            self.env.sleep(rng.duration(Duration::ZERO, think)).await;
            // Half of the operations are on a few files, so that machines meet; the others evict these from the caches.
            let among = if rng.chance(500_000) { HOT_FILES } else { files.len() };
            let file = &files[rng.index(among)];
            let outcome = match rng.below(10) {
                0..2 => self.store(file).await,
                2..5 => self.amend(file, &mut rng).await,
                _ => self.read(file).await,
            };
            // A failed operation is in the history as not acknowledged.
            if let Err(error) = outcome {
                self.history.failed(self.number, &error);
            }
        }
    }

    /// Changes some ranges of a file, and its length. The stored contents are the whole file as this user saw it, with
    /// the changes. Acknowledged when close has returned without an error.
    ///
    /// # Errors
    /// Those of the cell; the store may have taken effect or may yet do so.
    async fn amend(&self, file: &str, rng: &mut SimRng) -> Outcome {
        // The open version is that of this time.
        let begin = self.history.now();
        let entry = self.venus.walk(file.as_bytes(), true).await?;
        let flags = OpenFlags { read: true, ..OpenFlags::WRITE };
        let outcome = match self.venus.open(entry.node, flags).await {
            Ok(opened) => {
                let amended = self.amend_open(file, begin, entry.node, opened.handle, rng).await;
                let released = self.venus.release(opened.handle).await;
                amended.and(released)
            }
            Err(error) => Err(error),
        };
        self.venus.forget(entry.node, 1);
        outcome
    }

    async fn amend_open(
        &self,
        file: &str,
        begin: Time,
        node: NodeId,
        handle: HandleId,
        rng: &mut SimRng,
    ) -> Outcome {
        let before = self.read_whole(handle).await?;
        self.history.read(self.number, file, self.history.identify(&before), begin);
        let length = match rng.below(3) {
            0 => 8 + rng.index(before.len() + 1),
            _ => before.len().max(8),
        };
        // Sometimes the file is first truncated at an offset, so that zeros which were never written take the place of
        // the rest.
        let kept = if rng.chance(250_000) { rng.index(before.len() + 1) } else { before.len() };
        let cut = (kept.min(length) < before.len()).then_some(kept.min(length));
        let behind_the_number = length - 8;
        let count = if behind_the_number == 0 { 0 } else { rng.below(4) };
        let places: Vec<usize> = (0..count).map(|_| 8 + rng.index(behind_the_number)).collect();
        let (content, after) = self.history.make_content(|number| {
            let mut after = before.clone();
            after.truncate(kept);
            after.resize(length, 0);
            after[..8].copy_from_slice(&number.to_be_bytes());
            for place in &places {
                after[*place] ^= number as u8 | 1;
            }
            after
        });
        self.history.storing(self.number, file, content);
        for size in cut.into_iter().chain(cut.is_some_and(|cut| cut < length).then_some(length)) {
            let attr = SetAttr { size: Some(size as u64), ..SetAttr::default() };
            self.venus.setattr(node, Some(handle), attr).await?;
        }
        let grown = if cut.is_some() { length..length } else { before.len()..length };
        let changed = places.into_iter().map(|place| place..place + 1);
        for range in std::iter::once(0..8).chain(changed).chain([grown]) {
            self.write_all(handle, range.start, after.slice(range)).await?;
            self.env.sleep(rng.duration(Duration::ZERO, BETWEEN_WRITES)).await;
        }
        self.venus.flush(handle, 0).await?;
        self.history.stored(file, content);
        Ok(())
    }

    async fn write_all(&self, handle: HandleId, at: usize, data: Bytes) -> Outcome {
        let mut done = 0;
        while done < data.len() {
            done += self.venus.write(handle, (at + done) as u64, data.slice(done..)).await?;
        }
        Ok(())
    }
}

const HOT_FILES: usize = 3;
const BETWEEN_WRITES: Duration = Duration::from_millis(200);
