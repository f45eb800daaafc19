//! Small primitives that need no runtime. All are first come, first served, so the simulator sees the same order each time.

pub mod oneshot;

mod mutex;
mod notify;
mod semaphore;
mod waiters;

pub use mutex::{Mutex, MutexGuard};
pub use notify::{Notified, Notify};
pub use semaphore::{Acquire, Permit, Semaphore};

use std::sync::{Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};

/// Locks a mutex of the standard library, also after a panic elsewhere: for critical sections that leave their data whole
/// at each step.
pub fn lock<T: ?Sized>(mutex: &StdMutex<T>) -> StdGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
