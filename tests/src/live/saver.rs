//! Program that saves files of a mount by renaming new ones over them, and reads what other mounts have saved. Its history is checked by the
//! model with which the simulator checks simulated machines.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use afs_sim::SimRng;

use crate::live::wait::until;
use crate::model::register::Time;
use crate::sim::content;
use crate::sim::history::{History, Timeline};

/// How long OpenAFS's client may take until it sees what replaced a file, while others replace it again and again.
const LATE_AT_MOST: Duration = Duration::from_secs(20);

/// Time since its creation.
#[derive(Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }
}

impl Timeline for Stopwatch {
    fn now(&self) -> Time {
        Time::try_from(self.0.elapsed().as_nanos()).unwrap_or(Time::MAX)
    }

    fn note(&self, text: &str) {
        // Shown if the test fails.
        println!("{:?} {text}", self.0.elapsed());
    }
}

/// A program at a mount.
#[derive(Clone)]
pub struct Saver {
    /// Number in the history.
    pub number: usize,
    /// Where it sees the directories.
    pub top: PathBuf,
    /// The record of its operations.
    pub history: History,
    /// Whether it may see for some time what was replaced, as in OpenAFS's client, which stores and looks later. Then it reads only.
    pub is_late: bool,
}

impl Saver {
    /// Makes directories, each with all files.
    ///
    /// # Errors
    /// Those of the mount.
    pub fn prepare(&self, dirs: &[&str], files: &[&str]) -> io::Result<()> {
        for dir in dirs {
            fs::create_dir(self.top.join(dir))?;
            files.iter().try_for_each(|file| self.save(dir, file, "new"))?;
        }
        Ok(())
    }

    /// Works in the directories in runs, of saves in one of them or of reads.
    ///
    /// # Errors
    /// Those of the mount, except that a file was replaced while it was opened.
    pub fn work(&self, dirs: &[&str], files: &[&str], runs: u32, mut rng: SimRng) -> io::Result<()> {
        if self.is_late {
            self.history.doubt(self.number, Duration::from_secs(3600));
        }
        for run in 0..runs {
            let dir = rng.pick(dirs).copied().unwrap_or_default();
            if self.is_late || rng.chance(400_000) {
                files.iter().try_for_each(|file| self.read(dir, file))?;
                continue;
            }
            for step in 0..rng.between(5, 15) {
                let file = rng.pick(files).copied().unwrap_or_default();
                self.save(dir, file, &format!(".u{}r{run}s{step}", self.number))?;
                match rng.below(10) {
                    0 => self.read(dir, file)?,
                    1 => File::open(self.top.join(dir))?.sync_all()?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn save(&self, dir: &str, file: &str, new: &str) -> io::Result<()> {
        let (path, content) = (format!("{dir}/{file}"), self.history.new_content());
        let new = self.top.join(dir).join(new);
        self.history.storing(self.number, &path, content);
        let mut written = File::create_new(&new)?;
        written.write_all(&content::bytes(content))?;
        drop(written);
        fs::rename(new, self.top.join(&path))?;
        self.history.stored(&path, content);
        Ok(())
    }

    fn read(&self, dir: &str, file: &str) -> io::Result<()> {
        let path = format!("{dir}/{file}");
        if self.is_late {
            return until(&path, LATE_AT_MOST, || match self.read_once(&path) {
                Err(error) if was_replaced(&error) => None,
                done => Some(done),
            });
        }
        self.read_once(&path)
    }

    fn read_once(&self, path: &str) -> io::Result<()> {
        let begin = self.history.now();
        match fs::read(self.top.join(path)) {
            // OpenAFS's client in user space answers for an open file by its path: the bytes are of what was opened, the length of what has
            // the name (so it does at OpenAFS's own servers too).
            Ok(data) if self.is_late && self.history.is_cut_to_another(path, &data) => {
                return Err(io::ErrorKind::StaleNetworkFileHandle.into());
            }
            Ok(data) => self.history.read(self.number, path, content::identify(&data), begin),
            // Replaced between the look-up and the open.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ESTALE)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Whether OpenAFS's client says so of a file that was replaced: before its open it does not find it, after it, it cannot fetch its data, or
/// tells the length of the other.
fn was_replaced(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
        || error.raw_os_error() == Some(libc::EIO)
}
