//! Synchronisation primitives of tasks: those of tokio that need no runtime.
//!
//! All are first come, first served, so that the order in the simulator follows from the seed. For data used only
//! between two awaits, `parking_lot::Mutex` is the better lock.

pub use tokio::sync::futures::{Notified, OwnedNotified};
pub use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore, oneshot};
