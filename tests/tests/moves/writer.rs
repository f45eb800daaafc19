//! A thread that changes files in every way without pause, and records the acknowledged changes.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use afs_sim::SimRng;
use andrew_tests::live::closing::close;
use andrew_tests::live::process::seconds;
use andrew_tests::live::wait::until;

/// Files that a writer keeps: above this count it removes as many as it creates.
const FILES_MAX: usize = 150;

/// Acknowledged contents, by path below the writer's folder: some 15 MB in total.
#[derive(Debug, Default)]
pub struct Written {
    files: BTreeMap<PathBuf, Known>,
    folders: Vec<PathBuf>,
    /// Failed operations. None may fail.
    pub errors: Vec<String>,
    /// Duration of the slowest operation.
    pub slowest: Duration,
    /// Number of operations.
    pub count: u64,
}

/// A file.
#[derive(Debug, Default)]
struct Known {
    bytes: Vec<u8>,
    /// Its operations with their times, for the report of a difference.
    history: Vec<String>,
}

/// A writer at work.
pub struct Writer {
    thread: JoinHandle<Written>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
}

impl Writer {
    /// Starts a writer in a new folder.
    pub fn start(folder: &Path, seed: u64) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut hand =
            Worker { top: folder.to_owned(), rng: SimRng::new(seed), names: 0, written: Written::default() };
        let (stopped, counted) = (stop.clone(), done.clone());
        let work = move || {
            hand.note("the folder", |hand| fs::create_dir(&hand.top));
            hand.written.folders.push(PathBuf::new());
            while !stopped.load(Ordering::SeqCst) && hand.written.errors.is_empty() {
                hand.step();
                counted.fetch_add(1, Ordering::SeqCst);
            }
            hand.written
        };
        Self { thread: std::thread::spawn(work), stop, done }
    }

    /// Waits until it has completed `count` more operations.
    pub fn wait_for_more(&self, count: u64) {
        let wanted = self.done.load(Ordering::SeqCst) + count;
        until("more operations of a writer", seconds(180), || {
            (self.thread.is_finished() || self.done.load(Ordering::SeqCst) >= wanted).then_some(())
        });
    }

    /// Stops it after its current operation.
    pub fn finish(self) -> Written {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

impl Written {
    /// Compares a folder with the record: every name, every byte, and that there are no other names. Returns the
    /// differences.
    pub fn differences(&self, top: &Path) -> Vec<String> {
        let mut seen = Vec::new();
        let mut found = Vec::new();
        for folder in &self.folders {
            for entry in fs::read_dir(top.join(folder)).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                if entry.file_type().unwrap().is_file() {
                    seen.push(path);
                } else if !self.folders.contains(&path) {
                    found.push(format!("{} is there, and nobody made it", path.display()));
                }
            }
        }
        seen.sort();
        if !seen.iter().eq(self.files.keys()) {
            found.push(format!("there are {seen:?}, there should be {:?}", self.files.keys()));
        }
        found.extend(self.files.iter().filter_map(|(path, known)| known.difference(&top.join(path))));
        found.iter().map(|what| format!("{}: {what}", top.display())).collect()
    }

    /// Total length of the files.
    pub fn bytes(&self) -> usize {
        self.files.values().map(|known| known.bytes.len()).sum()
    }
}

impl Known {
    fn note(&mut self, what: String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.history.push(format!("{}.{:03} {what}", now.as_secs(), now.subsec_millis()));
    }

    fn difference(&self, path: &Path) -> Option<String> {
        let have = fs::read(path).map_err(|error| error.to_string());
        if have.as_ref() == Ok(&self.bytes) {
            return None;
        }
        let name = path.file_name().unwrap_or_default().display();
        let (length, status) = (self.bytes.len(), fs::metadata(path));
        let at = have.as_ref().map(|have| have.iter().zip(&self.bytes).position(|(a, b)| a != b));
        let have = have.as_ref().map(Vec::len);
        Some(format!(
            "{name} has {have:?} bytes, first other at {at:?}, {length} were written; {status:?}; {:#?}",
            self.history
        ))
    }
}

struct Worker {
    top: PathBuf,
    rng: SimRng,
    names: u64,
    written: Written,
}

impl Worker {
    fn step(&mut self) {
        let files: Vec<PathBuf> = self.written.files.keys().cloned().collect();
        let picked = self.rng.pick(&files).cloned();
        match (self.rng.below(12), picked) {
            (0, _) if self.written.folders.len() < 12 => self.make_folder(),
            (1 | 2, Some(path)) => self.append(&path),
            (3 | 4, Some(path)) => self.overwrite(&path),
            (5, Some(path)) => self.replace(&path),
            (6 | 7, Some(path)) => self.rename(&path),
            (8 | 9, Some(path)) if files.len() > FILES_MAX => self.remove(&path),
            _ if files.len() > FILES_MAX + 20 => {}
            _ => {
                let path = self.fresh();
                self.replace(&path);
            }
        }
    }

    fn note(&mut self, what: &str, work: impl FnOnce(&mut Self) -> io::Result<()>) {
        let began = Instant::now();
        if let Err(error) = work(self) {
            self.written.errors.push(format!("{what}: {error}"));
        }
        self.written.slowest = self.written.slowest.max(began.elapsed());
        self.written.count += 1;
    }

    fn fresh(&mut self) -> PathBuf {
        self.names += 1;
        let folder = self.rng.pick(&self.written.folders).cloned().unwrap_or_default();
        folder.join(format!("f{}", self.names))
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.rng.between(1, most);
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        self.rng.fill(&mut bytes);
        bytes
    }

    fn make_folder(&mut self) {
        let path = self.fresh();
        self.note("mkdir", |hand| fs::create_dir(hand.top.join(&path)));
        self.written.folders.push(path);
    }

    fn replace(&mut self, path: &Path) {
        let most = if self.rng.below(8) == 0 { 600_000 } else { 60_000 };
        let bytes = self.bytes(most);
        self.note("write", |hand| store(File::create(hand.top.join(path))?, |file| file.write_all(&bytes)));
        let known = self.written.files.entry(path.to_owned()).or_default();
        known.note(format!("write {} bytes", bytes.len()));
        known.bytes = bytes;
    }

    fn append(&mut self, path: &Path) {
        let bytes = self.bytes(20_000);
        self.note("append", |hand| {
            let file = OpenOptions::new().append(true).open(hand.top.join(path))?;
            store(file, |file| file.write_all(&bytes))
        });
        let known = self.written.files.entry(path.to_owned()).or_default();
        known.note(format!("append {} bytes to {}", bytes.len(), known.bytes.len()));
        known.bytes.extend(bytes);
    }

    fn overwrite(&mut self, path: &Path) {
        let bytes = self.bytes(5_000);
        let length = self.written.files.get(path).map_or(0, |known| known.bytes.len());
        let at = self.rng.index(length + 1);
        self.note("overwrite", |hand| {
            let file = OpenOptions::new().write(true).open(hand.top.join(path))?;
            store(file, |file| file.write_all_at(&bytes, at as u64))
        });
        let known = self.written.files.entry(path.to_owned()).or_default();
        known.note(format!("write {} bytes at {at} of {length}", bytes.len()));
        known.bytes.resize(length.max(at + bytes.len()), 0);
        known.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
    }

    fn rename(&mut self, old: &Path) {
        let new = self.fresh();
        self.note("rename", |hand| fs::rename(hand.top.join(old), hand.top.join(&new)));
        let mut known = self.written.files.remove(old).unwrap_or_default();
        known.note(format!("rename {} to {}", old.display(), new.display()));
        self.written.files.insert(new, known);
    }

    fn remove(&mut self, path: &Path) {
        self.note("remove", |hand| fs::remove_file(hand.top.join(path)));
        self.written.files.remove(path);
    }
}

/// A return without an error is an acknowledgement.
fn store(mut file: File, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    write(&mut file)?;
    file.sync_all()?;
    close(file)
}
