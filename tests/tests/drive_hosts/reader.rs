//! Threads that repeat a piece of work until they are stopped; and one that reads the tables of a program, past its client's cache.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use andrew_tests::live::cell::andrew;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::wait::until;

use crate::drive_hosts::program::Program;

/// A thread and the number of its rounds so far.
pub struct Rounds {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), String>>,
}

impl Rounds {
    pub fn start(mut round: impl FnMut() -> Result<(), String> + Send + 'static) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, count) = (stop.clone(), done.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                round()?;
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
        Self { stop, done, thread }
    }

    /// Waits until a round that begins now has ended.
    pub fn wait_for_whole(&self) {
        let before = self.done.load(Ordering::SeqCst);
        until("a whole round", seconds(300), || {
            (self.done.load(Ordering::SeqCst) >= before + 2 || self.thread.is_finished()).then_some(())
        });
    }

    pub fn finish(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap().unwrap();
    }
}

/// The thread that reads.
pub struct Reader(Rounds);

impl Reader {
    /// Reads a program's tables and flushes them from the client's cache; all bytes must be those of the other one.
    pub fn start(program: &Program, other: &Program) -> Self {
        let expected: Vec<_> = other.tables().map(|table| fs::read(table).unwrap()).collect();
        let program = program.clone();
        Self(Rounds::start(move || {
            program.tables().zip(&expected).try_for_each(|(table, bytes)| {
                let read = fs::read(&table).map_err(|error| format!("{}: {error}", table.display()))?;
                let mut flush = Netns::machine().command(andrew());
                flush.args(["fs", "flush"]).arg(&table);
                let _ = run(flush, seconds(60));
                if read == *bytes { Ok(()) } else { Err(format!("{}: other bytes", table.display())) }
            })
        }))
    }

    pub fn wait_for_round(&self) {
        self.0.wait_for_whole();
    }

    pub fn finish(self) {
        self.0.finish();
    }
}
