//! Simulated user: works on files through a cache manager, and records operations and observations.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef};
use afs_sim::SimRng;
use afs_venus::{Entry, ErrorKind, HandleId, NodeId, OpenFlags, Venus, VenusError};

use super::content;
use super::faults::AtWork;
use super::history::History;
use crate::model::register::Content;

/// A user at a client machine.
#[derive(Clone)]
pub struct User {
    /// Number for reports, and for names of its own.
    pub number: usize,
    /// The machine's cache manager.
    pub venus: Arc<Venus>,
    /// The machine.
    pub node: afs_sim::NodeId,
    /// Its clock.
    pub env: EnvRef,
    /// The record of operations.
    pub history: History,
}

/// Parameters of a user's work.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Number of operations.
    pub steps: u32,
    /// The longest pause between two.
    pub think: Duration,
    /// Calls the server before each operation, so that observations are covered by promises of its present run.
    pub calls_first: bool,
    /// Makes no changes.
    pub reads_only: bool,
}

type Outcome<T> = Result<T, VenusError>;

impl User {
    /// Creates the files that all users work on, empty.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn prepare(&self, files: &[String]) -> Outcome<()> {
        for file in files {
            let (entry, opened) =
                self.venus.create(NodeId::ROOT, file.as_bytes(), 0o644, OpenFlags::WRITE).await?;
            self.venus.flush(opened.handle, 0).await?;
            self.venus.release(opened.handle).await?;
            self.venus.forget(entry.node, 1);
        }
        Ok(())
    }

    /// Replaces the contents of a file. Acknowledged when close has returned without an error.
    ///
    /// # Errors
    /// Those of the cell; the store may have taken effect or may yet do so.
    pub async fn store(&self, file: &str) -> Outcome<()> {
        let content = self.history.new_content();
        self.history.storing(self.number, file, content);
        self.put(file, content).await?;
        self.history.stored(file, content);
        Ok(())
    }

    async fn put(&self, file: &str, content: Content) -> Outcome<()> {
        let entry = self.venus.walk(file.as_bytes(), true).await?;
        let flags = OpenFlags { truncate: true, ..OpenFlags::WRITE };
        let outcome = match self.venus.open(entry.node, flags).await {
            Ok(opened) => {
                let written = self.write_and_close(opened.handle, content).await;
                let released = self.venus.release(opened.handle).await;
                written.and(released)
            }
            Err(error) => Err(error),
        };
        self.venus.forget(entry.node, 1);
        outcome
    }

    pub(super) async fn write_and_close(&self, handle: HandleId, content: Content) -> Outcome<()> {
        let data = content::bytes(content);
        let mut pos = 0;
        while pos < data.len() {
            let piece = data.slice(pos..data.len().min(pos + PIECE));
            pos += self.venus.write(handle, pos as u64, piece).await?;
        }
        self.venus.flush(handle, 0).await
    }

    /// Opens and reads a file.
    ///
    /// # Errors
    /// Those of the cell; then there is no observation.
    pub async fn read(&self, file: &str) -> Outcome<()> {
        let begin = self.history.now();
        let data = self.get(file).await?;
        self.history.read(self.number, file, self.history.identify(&data), begin);
        Ok(())
    }

    /// Opens and reads a file, and identifies its contents.
    ///
    /// # Errors
    /// Those of the cell.
    ///
    /// # Panics
    /// If the bytes were never stored as a whole.
    pub async fn content(&self, file: &str) -> Outcome<Content> {
        let data = self.get(file).await?;
        Ok(self.history.identify(&data).unwrap_or_else(|what| panic!("{file}: {what}")))
    }

    async fn get(&self, file: &str) -> Outcome<Vec<u8>> {
        let entry = self.venus.walk(file.as_bytes(), true).await?;
        let outcome = match self.venus.open(entry.node, OpenFlags::READ).await {
            Ok(opened) => {
                let data = self.read_whole(opened.handle).await;
                let released = self.venus.release(opened.handle).await;
                released.and(data)
            }
            Err(error) => Err(error),
        };
        self.venus.forget(entry.node, 1);
        outcome
    }

    pub(super) async fn read_whole(&self, handle: HandleId) -> Outcome<Vec<u8>> {
        let mut data = Vec::new();
        loop {
            let piece = self.venus.read(handle, data.len() as u64, PIECE).await?;
            if piece.is_empty() {
                return Ok(data);
            }
            data.extend_from_slice(&piece);
        }
    }

    /// Creates a name: a file, a directory, or a symbolic link.
    ///
    /// # Errors
    /// Those of the cell; the name may exist.
    pub async fn make(&self, name: &str, draw: u64) -> Outcome<()> {
        let begin = self.history.now();
        self.history.names(|names| names.made(name, begin, None));
        let bytes = name.as_bytes();
        let entry = match draw % 3 {
            0 => self.venus.mkdir(NodeId::ROOT, bytes, 0o755).await?,
            1 => self.venus.symlink(NodeId::ROOT, bytes, b"somewhere").await?,
            _ => self.venus.mknod(NodeId::ROOT, bytes, 0o644).await?,
        };
        self.venus.forget(entry.node, 1);
        let end = Some(self.history.now());
        self.history.names(|names| names.made(name, begin, end));
        Ok(())
    }

    /// Removes a name created by [`User::make`].
    ///
    /// # Errors
    /// Those of the cell; the name may be gone.
    pub async fn remove(&self, name: &str, draw: u64) -> Outcome<()> {
        let begin = self.history.now();
        self.history.names(|names| names.gone(name, begin, None));
        match draw % 3 {
            0 => self.venus.rmdir(NodeId::ROOT, name.as_bytes()).await?,
            _ => self.venus.unlink(NodeId::ROOT, name.as_bytes()).await?,
        }
        let end = Some(self.history.now());
        self.history.names(|names| names.gone(name, begin, end));
        Ok(())
    }

    /// Renames `name` to `to`.
    ///
    /// # Errors
    /// Those of the cell; it may have been renamed.
    pub async fn rename(&self, name: &str, to: &str) -> Outcome<()> {
        let begin = self.history.now();
        self.history.names(|names| {
            names.gone(name, begin, None);
            names.made(to, begin, None);
        });
        self.venus.rename(NodeId::ROOT, name.as_bytes(), NodeId::ROOT, to.as_bytes()).await?;
        let end = Some(self.history.now());
        self.history.names(|names| {
            names.gone(name, begin, end);
            names.made(to, begin, end);
        });
        Ok(())
    }

    /// Looks a name up.
    ///
    /// # Errors
    /// Those of the cell, except that there is no such name.
    pub async fn look(&self, name: &str) -> Outcome<()> {
        let begin = self.history.now();
        let there = match self.venus.lookup(NodeId::ROOT, name.as_bytes()).await {
            Ok(Entry { node, .. }) => {
                self.venus.forget(node, 1);
                true
            }
            // Stale: the name was read before it was removed, and its status requested afterwards.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Stale) => false,
            Err(error) => return Err(error),
        };
        self.history.saw(name, there, begin);
        Ok(())
    }

    /// Lists the root, and records for every name that ever existed whether it is there.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn list(&self) -> Outcome<()> {
        let begin = self.history.now();
        let mut listed = Vec::new();
        let mut offset = 0;
        loop {
            let part = self.venus.readdir(NodeId::ROOT, offset, 16).await?;
            let Some(last) = part.last() else { break };
            offset = last.next_offset;
            listed.extend(part.into_iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()));
        }
        let ever: Vec<String> = self.history.names(|names| names.ever().map(str::to_owned).collect());
        for name in ever {
            self.history.saw(&name, listed.contains(&name), begin);
        }
        Ok(())
    }

    /// Waits until a server that was unreachable, or forgot this machine, has contacted it again.
    ///
    /// # Errors
    /// Those of the cell, if that takes long.
    pub async fn hear_of_server(&self, file: &str) -> Outcome<()> {
        let mut tries = 0;
        while let Err(error) = self.ask_server(file).await {
            tries += 1;
            if tries > 20 {
                return Err(error);
            }
            self.env.sleep(Duration::from_secs(10)).await;
        }
        Ok(())
    }

    /// Makes a call to which the server must reply and that changes nothing.
    async fn ask_server(&self, file: &str) -> Outcome<()> {
        let entry = self.venus.walk(file.as_bytes(), true).await?;
        self.venus.forget(entry.node, 1);
        self.venus.statfs(NodeId::ROOT).await.map(drop)
    }

    /// Makes the server hear from this machine.
    ///
    /// A restarted server knows none of its clients, and breaks no promises of its earlier run: a client learns of that
    /// at its next call.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn call_server(&self, step: u32) -> Outcome<()> {
        let name = format!("u{}c{step}", self.number);
        let entry = self.venus.mknod(NodeId::ROOT, name.as_bytes(), 0o644).await?;
        self.venus.forget(entry.node, 1);
        Ok(())
    }

    /// Creates four files at the same time, and removes them at the same time.
    ///
    /// # Errors
    /// Those of the cell; any of the files may exist.
    pub async fn burst(&self, step: u32) -> Outcome<()> {
        let names: Vec<String> = (0..4).map(|n| format!("u{}b{step}x{n}", self.number)).collect();
        let made = afs_rpc::future::join_all(names.iter().map(|name| self.make(name, 2))).await;
        made.into_iter().collect::<Outcome<Vec<()>>>()?;
        let gone = afs_rpc::future::join_all(names.iter().map(|name| self.remove(name, 2))).await;
        gone.into_iter().collect::<Outcome<Vec<()>>>().map(drop)
    }

    /// Gets the status of all these files, as `ls -l` does.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn walk(&self, files: &[String]) -> Outcome<()> {
        for file in files {
            let entry = self.venus.walk(file.as_bytes(), true).await?;
            self.venus.forget(entry.node, 1);
        }
        Ok(())
    }

    /// Gets the status of random files, for as long as users work.
    pub async fn look_around(self, files: Vec<String>, working: AtWork, mut rng: SimRng) {
        while working.load(Ordering::Relaxed) > 0 {
            self.env.sleep(rng.duration(Duration::ZERO, Duration::from_millis(40))).await;
            // Other observations show the outcome.
            let _ = self.walk(&files[rng.index(files.len())..][..1]).await;
        }
    }

    /// Works on the files and on names of its own, whatever the outcome of each operation.
    pub async fn work(self, files: Vec<String>, habits: Habits, mut rng: SimRng) {
        let mut own: Vec<(String, u64)> = Vec::new();
        for step in 0..habits.steps {
            self.env.sleep(rng.duration(Duration::ZERO, habits.think)).await;
            if habits.calls_first && self.call_server(step).await.is_err() {
                continue;
            }
            if habits.reads_only {
                let begin = self.env.now();
                let outcome = self.read(&files[rng.index(files.len().min(HOT_FILES))]).await;
                self.history.took(self.number, self.env.now() - begin);
                if let Err(error) = outcome {
                    self.history.failed(self.number, &error);
                }
                continue;
            }
            let begin = self.env.now();
            let outcome = self.step(&files, step, &mut own, &mut rng).await;
            self.history.took(self.number, self.env.now() - begin);
            // A failed operation is in the history as not acknowledged. A name whose operation failed is not used
            // again, since its state is unknown.
            if let Err(error) = outcome {
                self.history.failed(self.number, &error);
                own.retain(|(name, _)| self.history.names(|names| names.is_settled(name)));
            }
        }
    }

    async fn step(
        &self,
        files: &[String],
        step: u32,
        own: &mut Vec<(String, u64)>,
        rng: &mut SimRng,
    ) -> Outcome<()> {
        // Most operations are on a few files, however many there are.
        let file = &files[rng.index(files.len().min(HOT_FILES))];
        match rng.below(14) {
            0..4 => self.store(file).await,
            4..8 => self.read(file).await,
            8 => {
                let (name, draw) = (format!("u{}s{step}", self.number), rng.u64());
                own.push((name.clone(), draw));
                self.make(&name, draw).await
            }
            9 if !own.is_empty() => {
                let (name, draw) = own.swap_remove(rng.index(own.len()));
                self.remove(&name, draw).await
            }
            10 if !own.is_empty() => {
                let (name, draw) = own.swap_remove(rng.index(own.len()));
                let to = format!("u{}r{step}", self.number);
                own.push((to.clone(), draw));
                self.rename(&name, &to).await
            }
            11 => self.burst(step).await,
            12 => self.walk(files).await,
            _ => match self.any_name(rng) {
                Some(name) => self.look(&name).await,
                None => self.list().await,
            },
        }
    }

    fn any_name(&self, rng: &mut SimRng) -> Option<String> {
        self.history.names(|names| rng.pick(&names.ever().collect::<Vec<_>>()).map(|name| (*name).to_owned()))
    }
}

/// Number of files that users read and write, however many there are to look up.
const HOT_FILES: usize = 3;
const PIECE: usize = 32 << 10;
