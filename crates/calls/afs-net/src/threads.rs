//! Start of threads and runtimes, with a named error where the system grants no thread.
//!
//! A runtime panics when it cannot start its threads. Therefore as many threads as it needs, and some more, are started for a moment
//! before it: what fails fails there, as an error.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use afs_env::refused;
use rustix::thread::{Pid, gettid};
use tokio::runtime::{Builder, Runtime};

/// Threads shown to be there beyond those of a runtime: other processes of the user may start some in the same moment.
const SPARE: usize = 4;
/// Threads on which a runtime looks up names.
const RESOLVERS_MAX: usize = 4;
/// How long a thread of names waits for work: for ever, in effect.
const ALWAYS: Duration = Duration::from_secs(u32::MAX as u64);
/// How often, and how many times, it is looked whether a thread that has ended is uncounted.
const LOOK: Duration = Duration::from_micros(100);
const LOOKS_MAX: u32 = 10_000;

/// Starts a thread.
///
/// # Errors
/// The system grants none; the error says which, and what to do.
pub fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    #[cfg(test)]
    tests::granted()?;
    let thread = thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|error| refused(&format!("the thread `{name}`"), &error))
}

/// Starts a runtime with `workers` threads for tasks.
///
/// # Errors
/// The system grants no threads or no descriptors.
pub fn runtime(name: &str, workers: usize) -> io::Result<Runtime> {
    room(name, workers + 1)?;
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).max_blocking_threads(RESOLVERS_MAX).thread_keep_alive(ALWAYS);
    builder.thread_name(name).enable_all().build()
}

/// Starts a runtime of one thread for tasks, which may look up names of hosts: that is done on other threads, of which one is there from
/// the start and stays. With none, a look-up that gets no thread would be a panic.
///
/// # Errors
/// As [`runtime`].
pub fn resolving_runtime(name: &str) -> io::Result<Runtime> {
    let runtime = runtime(name, 1)?;
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}

/// Shows that the system grants `count` threads, and some more, at this moment.
///
/// # Errors
/// It does not; `name` is that of the threads.
pub fn room(name: &str, count: usize) -> io::Result<()> {
    let (own, ids) = channel();
    let mut held = Vec::new();
    let granted = (0..count + SPARE).try_for_each(|_| {
        held.push(hold(name, own.clone())?);
        Ok(())
    });
    drop(own);
    let ending: Vec<_> = held.into_iter().map(|(thread, _hold)| thread).collect();
    ending.into_iter().for_each(|thread| drop(thread.join()));
    ids.iter().for_each(uncounted);
    granted
}

/// Starts a thread that tells its number and then waits until what is returned with it is dropped.
fn hold(name: &str, own: Sender<Pid>) -> io::Result<(JoinHandle<()>, Sender<()>)> {
    let (hold, held) = channel();
    let work = move || {
        let _ = own.send(gettid());
        let _dropped: Result<(), _> = held.recv();
    };
    Ok((start(name, work)?, hold))
}

/// Waits until the system counts a thread no longer, which is a little after its end.
fn uncounted(thread: Pid) {
    let path = format!("/proc/self/task/{}", thread.as_raw_nonzero());
    for _ in 0..LOOKS_MAX {
        if std::fs::metadata(&path).is_err() {
            return;
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// How many threads this one is granted yet.
        static GRANTED: Cell<usize> = const { Cell::new(usize::MAX) };
    }

    /// Runs `work` on this thread, which is granted `count` threads meanwhile.
    pub(crate) fn granting<T>(count: usize, work: impl FnOnce() -> T) -> T {
        GRANTED.set(count);
        let done = work();
        GRANTED.set(usize::MAX);
        done
    }

    pub(super) fn granted() -> io::Result<()> {
        match GRANTED.get() {
            0 => Err(refused("a thread", &io::Error::from_raw_os_error(11))),
            count => {
                GRANTED.set(count - 1);
                Ok(())
            }
        }
    }

    #[test]
    fn a_runtime_without_room_for_its_threads_is_an_error() {
        for count in 0..3 + SPARE {
            let error = granting(count, || runtime("some", 2)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{count} threads: {error}");
        }
        let runtime = granting(3 + SPARE, || runtime("some", 2)).unwrap();
        assert_eq!(runtime.block_on(async { 5 }), 5);
    }

    #[test]
    fn names_are_looked_up_by_the_thread_that_is_there_from_the_start() {
        let runtime = resolving_runtime("names").unwrap();
        // The thread waits for work by then.
        thread::sleep(Duration::from_millis(200));
        let before = own_threads();
        let found = runtime.block_on(tokio::net::lookup_host(("localhost", 80)));
        assert!(found.unwrap().count() > 0);
        assert_eq!(own_threads(), before);
    }

    fn own_threads() -> usize {
        std::fs::read_dir("/proc/self/task").unwrap().count()
    }
}
