//! Spare cache files: empty ones, made before the call that creates a file at its server. The thread that receives the reply may not
//! wait for a disk, and needs none then.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::{CacheFile, CacheStore};
use crate::files::Files;

/// Spare files at most. One is left where a creation failed after its file had been made.
const SPARES_MAX: usize = 8;

/// A bounded stack of empty cache files that nothing refers to.
#[derive(Default)]
pub(super) struct Spares(Mutex<Vec<Arc<dyn CacheFile>>>);

impl Files {
    /// Makes an empty cache file for a file that is about to be created. An error is left to the open that then makes its own.
    pub async fn prepare_spare(&self) {
        if self.spares.0.lock().len() >= SPARES_MAX {
            return;
        }
        let cache = self.cache.clone();
        if let Ok(file) = self.disk_briefly(move || empty_file(&*cache)).await {
            self.spares.0.lock().push(file);
        }
    }

    /// An empty cache file that needs no disk, if there is one.
    pub(super) fn take_spare(&self) -> Option<Arc<dyn CacheFile>> {
        self.spares.0.lock().pop()
    }
}

/// A new file, marked as not written to.
pub(super) fn empty_file(cache: &dyn CacheStore) -> io::Result<Arc<dyn CacheFile>> {
    let file = cache.create()?;
    file.mark()?;
    Ok(file)
}
