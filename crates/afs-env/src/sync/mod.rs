//! Small primitives that need no runtime. All are first come, first served, so the simulator sees the same order each time.

pub mod oneshot;

mod mutex;
mod notify;
mod semaphore;
mod waiters;

pub use mutex::{Mutex, MutexGuard};
pub use notify::{Notified, Notify};
pub use semaphore::{Acquire, Permit, Semaphore};
