//! Verification of the index of an open store: each page against the checksum that its parent has of it.

use crate::error::KvError;
use crate::kv::Kv;

impl Kv {
    /// Reads every page of the index as of the last checkpoint from the medium, as [`Kv::open`] does: a page that the disk has changed since would be
    /// served as it is. Commits and checkpoints go on meanwhile. Blocks on the medium.
    ///
    /// # Errors
    /// `Corrupt`: what is damaged first.
    pub fn verify_index(&self) -> Result<(), KvError> {
        // While the base is locked, the last commit in the file is the one that the view reads; the view keeps its pages from being used again.
        let (_view, index) = {
            let base = self.engine.base.lock();
            (base.view()?, base.index())
        };
        index.whole()
    }
}
