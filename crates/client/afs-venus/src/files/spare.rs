//! Stack of spare cache files: empty files created before the call that creates a file at its server. The thread that
//! receives the reply may not wait for a disk, and with a spare file need not.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::CacheFile;

/// Limit of the stack. A spare remains when a creation fails.
const SPARES_MAX: usize = 8;

/// Empty cache files that nothing refers to.
#[derive(Default)]
pub(super) struct Spares(Mutex<Vec<Arc<dyn CacheFile>>>);

impl Spares {
    pub fn is_full(&self) -> bool {
        self.0.lock().len() >= SPARES_MAX
    }

    /// Adds a file, or drops it if the stack has become full meanwhile.
    pub fn push(&self, file: Arc<dyn CacheFile>) {
        let mut files = self.0.lock();
        if files.len() < SPARES_MAX {
            files.push(file);
        }
    }

    pub fn pop(&self) -> Option<Arc<dyn CacheFile>> {
        self.0.lock().pop()
    }
}
