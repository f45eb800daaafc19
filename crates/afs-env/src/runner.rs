//! Who provides the threads.

/// Work that may block on the medium.
pub type Job = Box<dyn FnOnce() + Send>;

/// Runs work that may block. The stores have no threads of their own: the host hands them a pool, the
/// simulator a seeded order. Any closure `Fn(Job)` is a runner.
pub trait Runner: Send + Sync + 'static {
    /// Runs the job now or later, on any thread, exactly once. The caller holds no lock meanwhile.
    fn run(&self, job: Job);
}

impl<F: Fn(Job) + Send + Sync + 'static> Runner for F {
    fn run(&self, job: Job) {
        self(job);
    }
}

/// Runs each job at once on the caller's thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Runner for Inline {
    fn run(&self, job: Job) {
        job();
    }
}
