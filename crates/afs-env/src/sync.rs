//! How tasks wait for each other: the part of tokio that needs no runtime.
//!
//! All are first come, first served, so the simulator sees the same order each time. For data touched only between two awaits,
//! `parking_lot::Mutex` is the better lock.

pub use tokio::sync::futures::{Notified, OwnedNotified};
pub use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore, oneshot};
