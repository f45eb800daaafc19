//! Late releases: writers that have closed a file but that the kernel has not released yet.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_wire::fs::Status;

use crate::data::FileData;
use crate::error::Result;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Longest time to wait for a release after the last close(2). A process that keeps a closed file referenced for longer
/// (by a mapping, or in a child) delays opens of newer versions by this much.
const RELEASE_WAIT_MAX: Duration = Duration::from_secs(1);

impl Venus {
    /// Waits for late releases. A file open for writing is the newest version on this machine as long as it is open,
    /// and the kernel reports the end some time after close(2) has returned: until then it would hide newer versions of
    /// other clients.
    pub(super) async fn await_late_release(&self, vnode: &Arc<Vnode>, status: &Status) -> Result<()> {
        let Some(data) = vnode.state().file.data().cloned() else { return Ok(()) };
        if !is_outdated(&data, status) || !self.files.writers_have_closed(&data) {
            return Ok(());
        }
        self.files.note_kernel_writes_in(&data).await?;
        self.released(vnode, &data, || is_outdated(&data, status)).await;
        Ok(())
    }

    /// Waits for the release of a file that all its writers have closed: until then its data is in use, and the kernel has the file open
    /// some time after `cp` has ended.
    pub(super) async fn await_release(&self, vnode: &Vnode) {
        let Some(data) = vnode.state().file.data().cloned() else { return };
        if self.files.writers_have_closed(&data) {
            self.released(vnode, &data, || data.content().uses.writers() > 0).await;
            self.files.retire(vnode, &data, self.context.user).await;
        }
    }

    async fn released(&self, vnode: &Vnode, data: &FileData, is_awaited: impl Fn() -> bool + Sync) {
        let released = async {
            loop {
                let released = data.released.notified();
                if !is_awaited() {
                    return;
                }
                released.await;
            }
        };
        if self.env.timeout(RELEASE_WAIT_MAX, released).await.is_err() {
            tracing::debug!(fid = %vnode.key.fid, "a writer that has closed the file still holds it");
        }
    }
}

/// True if the data is current only because of its writers: it is not dirty, and the server has a newer version.
fn is_outdated(data: &FileData, status: &Status) -> bool {
    let content = data.content();
    content.uses.writers() > 0 && !content.is_dirty() && content.version < status.data_version
}
