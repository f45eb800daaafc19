//! Users who write, rename and remove files without pause, and record which operations were acknowledged.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use afs_sim::SimRng;
use parking_lot::Mutex;

use super::acknowledged::{Acknowledged, Version};
use crate::live::closing::write_and_close;
use crate::live::process::seconds;
use crate::live::wait::until;

/// Users at work in one folder, each with names of its own.
#[derive(Debug)]
pub struct Writers {
    users: Vec<JoinHandle<Acknowledged>>,
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    refusals: Arc<Mutex<Vec<String>>>,
}

impl Writers {
    /// Starts `count` users. Their operations follow from the seed and from the outcomes.
    #[must_use]
    pub fn start(folder: &Path, count: u64, seed: u64) -> Self {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let refusals = Arc::new(Mutex::new(Vec::new()));
        let new_user = |number| FolderUser {
            folder: folder.to_owned(),
            name: format!("{}-{number}", (b'a' + (seed % 26) as u8) as char),
            rng: SimRng::new(seed << 8 | number),
            versions: seed << 40 | number << 32,
            expected: Acknowledged::default(),
            refusals: refusals.clone(),
        };
        let work = |number| {
            let (user, stop, acknowledged) = (new_user(number), stop.clone(), acknowledged.clone());
            std::thread::spawn(move || user.work(&stop, &acknowledged))
        };
        let users = (0..count).map(work).collect();
        Self { users, stop, acknowledged, refusals }
    }

    /// Refused operations so far; there must be none while the servers are in order.
    #[must_use]
    pub fn refusals(&self) -> Vec<String> {
        self.refusals.lock().clone()
    }

    /// Waits until `count` more operations were acknowledged.
    ///
    /// # Panics
    /// If that takes more than a minute and a half.
    pub fn wait_for_more(&self, count: u64) {
        let wanted = self.acknowledged.load(Ordering::SeqCst) + count;
        until("more acknowledged operations", seconds(90), || {
            (self.acknowledged.load(Ordering::SeqCst) >= wanted).then_some(())
        });
    }

    /// Lets the users begin nothing more; one that waits for a server continues to wait.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Lets the users end their operations; returns the record of acknowledged operations.
    ///
    /// # Panics
    /// If one of them panicked.
    #[must_use]
    pub fn finish(self) -> Acknowledged {
        self.stop();
        let mut all = Acknowledged::default();
        for user in self.users {
            all.merge(user.join().unwrap_or_else(|_| panic!("a user panicked")));
        }
        all
    }
}

struct FolderUser {
    folder: PathBuf,
    name: String,
    rng: SimRng,
    versions: u64,
    expected: Acknowledged,
    refusals: Arc<Mutex<Vec<String>>>,
}

impl FolderUser {
    fn work(mut self, stop: &AtomicBool, acknowledged: &AtomicU64) -> Acknowledged {
        while !stop.load(Ordering::SeqCst) {
            match self.step() {
                Ok(()) => {
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => {
                    self.refusals.lock().push(error.to_string());
                    // A killed client refuses all operations at once.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
            }
        }
        self.expected
    }

    fn step(&mut self) -> io::Result<()> {
        let present = self.expected.present();
        let (what, name, done) = match (self.rng.below(10), self.rng.pick(&present).cloned()) {
            (0, Some(name)) => ("rename", name.clone(), self.rename(&name)),
            (1 | 2, Some(name)) if present.len() > 10 => ("remove", name.clone(), self.remove(&name)),
            (3..=6, Some(name)) => ("rewrite", name.clone(), self.write(&name)),
            _ => {
                let name = self.fresh();
                ("write", name.clone(), self.write(&name))
            }
        };
        done.map_err(|error| io::Error::new(error.kind(), format!("{what} {name}: {error}")))
    }

    /// A name that was never used: a name with uncertain contents is not used again.
    fn fresh(&mut self) -> String {
        self.versions += 1;
        format!("{}-{}", self.name, self.versions & 0xffff_ffff)
    }

    fn write(&mut self, name: &str) -> io::Result<()> {
        self.versions += 1;
        let version = Version::of_any_length(self.versions);
        self.expected.attempt_to_write(name, version);
        write_and_close(&self.folder.join(name), &version.bytes())?;
        self.expected.acknowledge(name);
        Ok(())
    }

    fn rename(&mut self, old: &str) -> io::Result<()> {
        let (new, version) = (self.fresh(), self.expected.known(old));
        self.expected.attempt(&new, version);
        self.expected.attempt(old, None);
        std::fs::rename(self.folder.join(old), self.folder.join(&new))?;
        self.expected.acknowledge(&new);
        self.expected.acknowledge(old);
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.expected.attempt(name, None);
        std::fs::remove_file(self.folder.join(name))?;
        self.expected.acknowledge(name);
        Ok(())
    }
}
