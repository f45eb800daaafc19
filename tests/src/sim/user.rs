//! A user of the cell: works on files through a cache manager, and writes down what was done and seen.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef};
use afs_sim::SimRng;
use afs_venus::{Entry, ErrorKind, HandleId, NodeId, OpenFlags, Venus, VenusError};

use super::content;
use super::history::History;
use crate::model::register::Content;

/// Somebody at a client machine.
#[derive(Clone)]
pub struct User {
    /// For reports, and for names of their own.
    pub number: usize,
    /// The machine's cache manager.
    pub venus: Arc<Venus>,
    /// The machine.
    pub node: afs_sim::NodeId,
    /// Time.
    pub env: EnvRef,
    /// Where everything is written down.
    pub history: History,
}

type Outcome<T> = Result<T, VenusError>;

impl User {
    /// Makes the files that everybody works on, empty.
    ///
    /// # Errors
    /// Of the cell.
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

    /// Replaces what is in a file. Acknowledged when close has returned without an error.
    ///
    /// # Errors
    /// Of the cell; the store may have happened or may yet happen.
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

    async fn write_and_close(&self, handle: HandleId, content: Content) -> Outcome<()> {
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
    /// Of the cell; then nothing was seen.
    pub async fn read(&self, file: &str) -> Outcome<()> {
        let begin = self.history.now();
        let data = self.get(file).await?;
        self.history.read(self.number, file, content::identify(&data), begin);
        Ok(())
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

    async fn read_whole(&self, handle: HandleId) -> Outcome<Vec<u8>> {
        let mut data = Vec::new();
        loop {
            let piece = self.venus.read(handle, data.len() as u64, PIECE).await?;
            if piece.is_empty() {
                return Ok(data);
            }
            data.extend_from_slice(&piece);
        }
    }

    /// Makes a name: a file, a directory, or a symbolic link.
    ///
    /// # Errors
    /// Of the cell; the name may have been made.
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

    /// Takes a name made by [`User::make`] away.
    ///
    /// # Errors
    /// Of the cell; the name may be gone.
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

    /// Gives what is called `name` the name `to`.
    ///
    /// # Errors
    /// Of the cell; it may have been renamed.
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

    /// Looks whether a name is there.
    ///
    /// # Errors
    /// Of the cell, other than that there is no such name.
    pub async fn look(&self, name: &str) -> Outcome<()> {
        let begin = self.history.now();
        let there = match self.venus.lookup(NodeId::ROOT, name.as_bytes()).await {
            Ok(Entry { node, .. }) => {
                self.venus.forget(node, 1);
                true
            }
            // Stale: its name was read before it was taken away, and it was asked for afterwards.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Stale) => false,
            Err(error) => return Err(error),
        };
        self.history.saw(name, there, begin);
        Ok(())
    }

    /// Lists the root, and writes down for every name that ever was whether it is there.
    ///
    /// # Errors
    /// Of the cell.
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

    /// Has the server hear from this machine.
    ///
    /// A server that has been started again knows none of its clients, and breaks no promises made in its former life:
    /// a client learns of that at its next call.
    ///
    /// # Errors
    /// Of the cell.
    pub async fn call_server(&self, step: u32) -> Outcome<()> {
        let name = format!("u{}c{step}", self.number);
        let entry = self.venus.mknod(NodeId::ROOT, name.as_bytes(), 0o644).await?;
        self.venus.forget(entry.node, 1);
        Ok(())
    }

    /// Works on the files and on names of its own for `steps` operations, whatever comes of each. With `restarts` it
    /// calls the server before each, so that what it sees is what the present life of the server promised.
    pub async fn work(self, files: Vec<String>, steps: u32, restarts: bool, mut rng: SimRng) {
        let mut own: Vec<(String, u64)> = Vec::new();
        for step in 0..steps {
            self.env.sleep(rng.duration(Duration::ZERO, THINK)).await;
            if restarts && self.call_server(step).await.is_err() {
                continue;
            }
            let file = files[rng.index(files.len())].clone();
            let outcome = match rng.below(12) {
                0..4 => self.store(&file).await,
                4..8 => self.read(&file).await,
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
                _ => match self
                    .history
                    .names(|names| rng.pick(&names.ever().collect::<Vec<_>>()).map(|n| (*n).to_owned()))
                {
                    Some(name) => self.look(&name).await,
                    None => self.list().await,
                },
            };
            // What failed is in the history as not acknowledged. A name whose operation failed is left alone, since
            // nobody knows what it is.
            if let Err(error) = outcome {
                self.history.failed(self.number, &error);
                own.retain(|(name, _)| self.history.names(|names| names.is_settled(name)));
            }
        }
    }
}

const PIECE: usize = 32 << 10;
const THINK: Duration = Duration::from_millis(400);
