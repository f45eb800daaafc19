//! Shared key ring that can be replaced while servers run.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

use super::KeyRing;

/// A key ring that all security classes of a server read, and that can be replaced at any time.
///
/// Connections that were authenticated with a key of the old ring stay authenticated.
#[derive(Clone, Default)]
pub struct SharedKeys(Arc<RwLock<Arc<KeyRing>>>);

impl SharedKeys {
    /// A shared ring with `keys`.
    #[must_use]
    pub fn new(keys: KeyRing) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(keys))))
    }

    /// The current keys.
    #[must_use]
    pub fn get(&self) -> Arc<KeyRing> {
        self.0.read().clone()
    }

    /// Replaces the keys.
    pub fn set(&self, keys: KeyRing) {
        *self.0.write() = Arc::new(keys);
    }
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKeys({} keys)", self.get().iter().count())
    }
}
