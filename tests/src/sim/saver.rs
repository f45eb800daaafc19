//! Simulated user who saves files as editors do: the new contents in a new file, which is then renamed over the old one. Runs of such saves
//! in one directory are what a mount with leases decides by itself.

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_venus::{ErrorKind, NodeId, OpenFlags, VenusError};

use super::content;
use super::user::User;
use crate::model::register::Content;

type Outcome<T> = Result<T, VenusError>;

/// When a save counts as acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledged {
    /// When the rename has returned: others see it.
    Renamed,
    /// When an fsync of the directory after it has returned: no failure of the server takes it away, and no loss of a lease.
    Synced,
}

impl User {
    /// Makes the directories, each with all files, which are empty.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn prepare_in(&self, dirs: &[String], files: &[String]) -> Outcome<()> {
        for dir in dirs {
            let made = self.venus.mkdir(NodeId::ROOT, dir.as_bytes(), 0o755).await?;
            for file in files {
                self.write_new(made.node, file, 0).await?;
            }
            self.venus.forget(made.node, 1);
        }
        Ok(())
    }

    /// Works in the directories in runs, each in one of them, whatever the outcome of each operation.
    pub async fn save(
        self,
        dirs: Vec<String>,
        files: Vec<String>,
        runs: u32,
        rule: Acknowledged,
        mut rng: SimRng,
    ) {
        for run in 0..runs {
            self.env.sleep(rng.duration(Duration::ZERO, BETWEEN_RUNS)).await;
            let dir = &dirs[rng.index(dirs.len())];
            let outcome = match rng.chance(500_000) {
                true => self.run_of_saves(dir, &files, run, rule, &mut rng).await,
                false => self.read_all(dir, &files).await,
            };
            // A failed operation is in the history as not acknowledged.
            if let Err(error) = outcome {
                self.history.failed(self.number, &error);
            }
        }
    }

    /// Reads all files of a directory.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn read_all(&self, dir: &str, files: &[String]) -> Outcome<()> {
        for file in files {
            self.read_present(&format!("{dir}/{file}")).await?;
        }
        Ok(())
    }

    /// Reads a file of which there is always one. Between the look-up and the open another one may take its place.
    async fn read_present(&self, path: &str) -> Outcome<()> {
        for _ in 0..REPLACED_MAX {
            match self.read(path).await {
                Err(error) if error.kind == ErrorKind::Stale => {}
                outcome => return outcome,
            }
        }
        self.read(path).await
    }

    async fn run_of_saves(
        &self,
        dir: &str,
        files: &[String],
        run: u32,
        rule: Acknowledged,
        rng: &mut SimRng,
    ) -> Outcome<()> {
        let entry = self.venus.walk(dir.as_bytes(), true).await?;
        let mut saved = Vec::new();
        let mut outcome = Ok(());
        for step in 0..rng.between(3, 12) {
            self.env.sleep(rng.duration(Duration::ZERO, BETWEEN_SAVES)).await;
            let file = &files[rng.index(files.len())];
            let path = format!("{dir}/{file}");
            let new = format!(".u{}r{run}s{step}", self.number);
            let content = self.history.new_content();
            self.history.storing(self.number, &path, content);
            outcome = self.replace(entry.node, file, &new, content).await;
            if outcome.is_err() {
                break;
            }
            saved.push((path, content));
            if rule == Acknowledged::Renamed {
                self.acknowledge(&mut saved);
            }
            if rng.chance(200_000) {
                outcome = self.read_present(&format!("{dir}/{}", files[rng.index(files.len())])).await;
            }
            if outcome.is_err() {
                break;
            }
        }
        if rule == Acknowledged::Synced && self.venus.fsync_directory(entry.node).await.is_ok() {
            self.acknowledge(&mut saved);
        }
        self.venus.forget(entry.node, 1);
        outcome
    }

    fn acknowledge(&self, saved: &mut Vec<(String, Content)>) {
        saved.drain(..).for_each(|(path, content)| self.history.stored(&path, content));
    }

    async fn replace(&self, dir: NodeId, file: &str, new: &str, content: Content) -> Outcome<()> {
        self.write_new(dir, new, content).await?;
        self.venus.rename(dir, new.as_bytes(), dir, file.as_bytes()).await
    }

    async fn write_new(&self, dir: NodeId, name: &str, content: Content) -> Outcome<()> {
        let (entry, opened) = self.venus.create(dir, name.as_bytes(), 0o644, OpenFlags::WRITE).await?;
        let written = match content::bytes(content) {
            data if data.is_empty() => self.venus.flush(opened.handle, 0).await,
            _ => self.write_and_close(opened.handle, content).await,
        };
        let released = self.venus.release(opened.handle).await;
        self.venus.forget(entry.node, 1);
        written.and(released)
    }
}

const BETWEEN_RUNS: Duration = Duration::from_secs(2);
const BETWEEN_SAVES: Duration = Duration::from_millis(60);
/// More replacements of a file than happen between a look-up and an open.
const REPLACED_MAX: usize = 20;
