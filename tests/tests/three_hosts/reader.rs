//! A thread that reads the replicated volume without pause.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use andrew_tests::live::files::Pattern;
use andrew_tests::live::process::seconds;
use andrew_tests::live::wait::until;

use super::cell::FILES;

/// Reads file after file, and flushes each from the client's cache, until stopped.
pub struct Reader {
    stop: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), String>>,
}

impl Reader {
    /// `forget` flushes a file from the client's cache.
    pub fn start(volume: PathBuf, forget: impl Fn(&std::path::Path) + Send + 'static) -> Self {
        let (stop, read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (stop.clone(), read.clone());
        let thread = std::thread::spawn(move || {
            for file in (0..FILES).cycle() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let path = volume.join(file.to_string());
                let same = Pattern(file).check(&path, 1).map_err(|error| format!("file {file}: {error}"))?;
                same.map_err(|why| format!("file {file}: {why}"))?;
                forget(&path);
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        Self { stop, read, thread }
    }

    /// Waits until it has read some more files.
    pub fn wait_for_more(&self) {
        let wanted = self.read.load(Ordering::Relaxed) + 5;
        until("the reader of the replicated volume", seconds(60), || {
            let read = self.read.load(Ordering::Relaxed);
            (read >= wanted || self.thread.is_finished()).then_some(())
        });
    }

    /// Stops it.
    ///
    /// # Panics
    /// If it has met an error.
    pub fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        let read = self.read.load(Ordering::Relaxed);
        let outcome = self.thread.join().unwrap();
        assert_eq!(outcome, Ok(()), "after {read} files");
    }
}
