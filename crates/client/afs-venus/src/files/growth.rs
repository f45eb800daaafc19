//! Growth of open data: the bytes that a newer version adds are put behind it, in the same cache file.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afs_wire::fs::Status;
use bytes::Bytes;

use crate::data::FileData;
use crate::error::Result;
use crate::files::Files;
use crate::vnode::Vnode;

impl Files {
    /// The data of a file that is open for reading alone and may become the version of this status, if that begins with all of it.
    pub fn may_grow(&self, vnode: &Vnode, status: &Status) -> Option<Arc<FileData>> {
        let state = vnode.state();
        let data = state.file.data().filter(|_| !state.file.is_orphan())?;
        let is_whole = data.whole.load(Ordering::SeqCst) && !data.lost.load(Ordering::SeqCst);
        let may_begin_it = data.differs.load(Ordering::SeqCst) != status.data_version.0;
        let content = data.content();
        let is_older = content.version < status.data_version && content.length <= status.length;
        let is_read = content.uses.count() > 0 && content.uses.writers() == 0;
        let may =
            is_whole && may_begin_it && is_older && is_read && content.is_complete() && !content.is_dirty();
        may.then(|| data.clone())
    }

    /// Puts bytes behind the end of the data. They belong to it when it has [`grown`](Files::grown).
    pub async fn put_behind(&self, data: &Arc<FileData>, pos: u64, bytes: Bytes) -> Result<()> {
        data.forget_mark();
        let file = data.file.clone();
        self.disk_moving(bytes.len() as u64, move || file.write_at(pos, &bytes)).await
    }

    /// Removes what was put behind the data.
    pub async fn trim(&self, data: &Arc<FileData>) -> Result<()> {
        data.forget_mark();
        let (file, length) = (data.file.clone(), data.content().length);
        self.disk_briefly(move || file.set_len(length)).await
    }

    /// The data has become the version of this status, whose last bytes are behind it. `invalidate` is called before anybody sees its length.
    pub fn grown(&self, vnode: &Vnode, data: &FileData, status: &Status, invalidate: impl Fn()) {
        let state = vnode.state();
        data.content().grow_to(status.data_version, status.length);
        invalidate();
        drop(state);
    }
}
