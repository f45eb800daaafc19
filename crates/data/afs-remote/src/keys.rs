//! Keys of a remote drive at its file server: the present one, and the next one while it may have been given to the drive.

use std::fmt;
use std::sync::Arc;

use afs_datapath::capability::{DriveKey, KeyEpoch};
use parking_lot::Mutex;

/// The keys of a drive, the same for all its stores. Clones are the same.
///
/// The drive tells with its first frame of which epoch its key is. If that is the next one, it has become the present one: from then
/// on nothing is sealed with the earlier one, which is forgotten. Both are to be durable before the next one is offered.
#[derive(Clone)]
pub struct DriveKeys(Arc<Mutex<State>>);

struct State {
    present: Arc<DriveKey>,
    next: Option<Arc<DriveKey>>,
}

impl From<Arc<DriveKey>> for DriveKeys {
    fn from(present: Arc<DriveKey>) -> Self {
        Self(Arc::new(Mutex::new(State { present, next: None })))
    }
}

impl DriveKeys {
    /// The key to seal with.
    #[must_use]
    pub fn present(&self) -> Arc<DriveKey> {
        self.0.lock().present.clone()
    }

    /// The key that the drive was or is to be given.
    #[must_use]
    pub fn next(&self) -> Option<Arc<DriveKey>> {
        self.0.lock().next.clone()
    }

    /// Permits the drive to have a key of the next epoch. One of another epoch is not taken.
    pub fn offer(&self, next: Arc<DriveKey>) {
        let mut state = self.0.lock();
        if state.present.epoch().next() == Some(next.epoch()) {
            state.next = Some(next);
        }
    }

    /// The key of the drive, which has one of this epoch.
    ///
    /// # Errors
    /// The epoch of the present key here, where neither is of that epoch.
    pub(crate) fn of_epoch(&self, epoch: KeyEpoch) -> Result<Arc<DriveKey>, KeyEpoch> {
        let mut state = self.0.lock();
        if let Some(next) = state.next.take_if(|next| next.epoch() == epoch) {
            state.present = next;
        }
        match state.present.epoch() {
            present if present == epoch => Ok(state.present.clone()),
            present => Err(present),
        }
    }
}

impl fmt::Debug for DriveKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (present, next) = (self.present(), self.next());
        f.debug_struct("DriveKeys").field("present", &present).field("next", &next).finish()
    }
}
