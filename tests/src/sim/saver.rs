//! Simulated user who saves files as editors do: the new contents in a new file, which is then renamed over the old one. Runs of such saves
//! in one directory are what a mount with leases decides by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_venus::{ErrorKind, HandleId, NodeId, OpenFlags, VenusError};

use super::content;
use super::objects::Trees;
use super::user::User;
use crate::model::register::Content;

type Outcome<T> = Result<T, VenusError>;

/// Work on files in directories.
#[derive(Clone, Default)]
pub struct Habit {
    /// The directories, each of which has all files.
    pub dirs: Vec<String>,
    /// Names of the files.
    pub files: Vec<String>,
    /// Most runs, each in one directory.
    pub runs: u32,
    /// Makes no changes.
    pub reads_only: bool,
    /// Number of the period of work. A user works once in each.
    pub period: u32,
    /// Set when the work is to end, in the middle of a run.
    pub stop: Arc<AtomicBool>,
    /// Subdirectories that are there.
    pub trees: Trees,
}

impl Habit {
    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl User {
    /// Makes the directories, each with all files, which have contents.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn prepare_in(&self, dirs: &[String], files: &[String]) -> Outcome<()> {
        for dir in dirs {
            let made = self.venus.mkdir(NodeId::ROOT, dir.as_bytes(), 0o755).await?;
            for file in files {
                let (path, content) = (format!("{dir}/{file}"), self.history.new_content());
                self.history.storing(self.number, &path, content);
                self.write_new(made.node, file, content).await?;
                self.history.stored(&path, content);
            }
            self.venus.fsync_directory(made.node).await?;
            self.venus.forget(made.node, 1);
        }
        Ok(())
    }

    /// Works in runs, whatever the outcome of each operation.
    pub async fn save(self, habit: Habit, mut rng: SimRng) {
        for run in 0..habit.runs {
            if habit.stops() {
                return;
            }
            self.env.sleep(rng.duration(Duration::ZERO, BETWEEN_RUNS)).await;
            let dir = &habit.dirs[rng.index(habit.dirs.len())];
            let outcome = match rng.below(20) {
                _ if habit.reads_only => self.look_into(dir, &habit, &mut rng).await,
                0..9 => self.look_into(dir, &habit, &mut rng).await,
                9..15 => self.run_of_saves(dir, &habit, run, &mut rng).await,
                15..18 => self.make_objects(dir, &habit, &mut rng).await,
                _ => self.remove_tree(dir, &habit, &mut rng).await,
            };
            // A failed operation is in the history as not acknowledged.
            if let Err(error) = outcome {
                self.history.failed(self.number, &error);
            }
        }
    }

    async fn look_into(&self, dir: &str, habit: &Habit, rng: &mut SimRng) -> Outcome<()> {
        self.read_all(dir, &habit.files).await?;
        self.read_objects(&self.history.last_objects(LATEST), OBJECTS_READ, rng).await
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

    async fn run_of_saves(&self, dir: &str, habit: &Habit, run: u32, rng: &mut SimRng) -> Outcome<()> {
        let entry = self.venus.walk(dir.as_bytes(), true).await?;
        let saved = self.saves(entry.node, dir, habit, run, rng).await;
        self.venus.forget(entry.node, 1);
        saved
    }

    async fn saves(&self, node: NodeId, dir: &str, habit: &Habit, run: u32, rng: &mut SimRng) -> Outcome<()> {
        let (mut unsynced, files) = (Vec::new(), &habit.files);
        for step in 0..rng.between(3, SAVES_MAX) {
            self.env.sleep(rng.duration(Duration::ZERO, BETWEEN_SAVES)).await;
            if habit.stops() {
                return Ok(());
            }
            let file = &files[rng.index(files.len())];
            let (path, new) = (format!("{dir}/{file}"), self.new_name(habit.period, run, step));
            let content = self.history.new_content();
            self.history.storing(self.number, &path, content);
            self.replace(node, file, &new, content).await?;
            self.history.stored(&path, content);
            unsynced.push(content);
            match rng.below(10) {
                0 | 1 => self.read_present(&format!("{dir}/{}", files[rng.index(files.len())])).await?,
                2 => self.sync(node, None, &mut unsynced).await?,
                3 => self.sync(node, Some(&path), &mut unsynced).await?,
                _ => {}
            }
        }
        Ok(())
    }

    fn new_name(&self, period: u32, run: u32, step: u64) -> String {
        format!(".u{}p{period}r{run}s{step}", self.number)
    }

    /// Calls fsync for the directory, or for the file that was saved last, unless another machine has saved it since.
    async fn sync(&self, dir: NodeId, file: Option<&str>, unsynced: &mut Vec<Content>) -> Outcome<()> {
        let covers = match file {
            None => self.venus.fsync_directory(dir).await.map(|()| true),
            Some(path) => self.sync_file(path, unsynced.last().copied()).await,
        };
        match covers {
            Ok(true) => {
                self.history.synced(self.number, unsynced);
                unsynced.clear();
            }
            Ok(false) => {}
            // Replaced by another machine since it was looked up.
            Err(error) if file.is_some() && error.kind == ErrorKind::Stale => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn sync_file(&self, path: &str, content: Option<Content>) -> Outcome<bool> {
        let entry = self.venus.walk(path.as_bytes(), true).await?;
        let opened = self.venus.open(entry.node, OpenFlags::READ).await;
        self.venus.forget(entry.node, 1);
        let handle = opened?.handle;
        let synced = self.sync_open(handle, content).await;
        self.venus.release(handle).await?;
        synced
    }

    /// Whether the open file has these contents, and is synced.
    async fn sync_open(&self, handle: HandleId, content: Option<Content>) -> Outcome<bool> {
        let data = self.read_whole(handle).await?;
        self.venus.fsync(handle).await?;
        Ok(self.history.identify(&data).ok() == content)
    }

    async fn replace(&self, dir: NodeId, file: &str, new: &str, content: Content) -> Outcome<()> {
        self.write_new(dir, new, content).await?;
        self.venus.rename(dir, new.as_bytes(), dir, file.as_bytes()).await
    }

    pub(super) async fn write_new(&self, dir: NodeId, name: &str, content: Content) -> Outcome<()> {
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

const BETWEEN_RUNS: Duration = Duration::from_secs(3);
/// Most saves in a row.
const SAVES_MAX: u64 = 30;
pub(super) const BETWEEN_SAVES: Duration = Duration::from_millis(60);
/// More replacements of a file than happen between a look-up and an open.
const REPLACED_MAX: usize = 20;
/// Objects of which a user reads some, the latest ones, and how many.
const LATEST: usize = 30;
const OBJECTS_READ: usize = 4;
