//! Stack of spare cache files: empty ones, made before the call that creates a file at its server. The thread that receives the reply may
//! not wait for a disk, and needs none then.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::CacheFile;

/// Spare files at most. One is left where a creation failed after its file had been made.
const SPARES_MAX: usize = 8;

/// Empty cache files that nothing refers to.
#[derive(Default)]
pub(super) struct Spares(Mutex<Vec<Arc<dyn CacheFile>>>);

impl Spares {
    pub fn is_full(&self) -> bool {
        self.0.lock().len() >= SPARES_MAX
    }

    /// Keeps a file, or drops it if others have filled the stack meanwhile.
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
