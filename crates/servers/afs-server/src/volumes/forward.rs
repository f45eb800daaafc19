//! Volume service call that sends a volume to another server.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::dump::VolumeDump;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::Nothing;
use afs_wire::vol;

use super::delivery::To;
use super::dump::forwarded;
use super::{VolumeServer, errno};
use crate::guard::administrators;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = administrators(table, |server: Arc<VolumeServer>, call: vol::Forward| async move {
        let work = server.enter(call.transaction, "Forward")?;
        let volume = work.volume()?;
        let dump = || VolumeDump::new(volume.clone(), forwarded(call.from_date));
        let (transaction, since, cookie) = (call.destination_transaction, call.from_date, call.cookie);
        let to = To { server: &call.destination, transaction, since, cookie };
        server.send_dump_to(&work, dump, to).await
    });
    administrators(table, |server: Arc<VolumeServer>, call: vol::ForwardDifference| async move {
        server.forward_difference(&call).await
    })
}

impl VolumeServer {
    async fn forward_difference(
        self: &Arc<Self>,
        call: &vol::ForwardDifference,
    ) -> Result<Nothing, AbortCode> {
        let work = self.enter(call.transaction, "Forward")?;
        let volume = work.volume()?;
        let base = work.store()?.volume(call.base).ok_or(AbortCode::VNOVOL)?;
        let header = base.header();
        if header.is_writable() || header.parent != volume.header().parent {
            return Err(errno(Errno::EINVAL));
        }
        let dump = || VolumeDump::difference(volume.clone(), base.clone());
        let (transaction, since, cookie) = (call.destination_transaction, UnixSeconds(1), call.cookie);
        let to = To { server: &call.destination, transaction, since, cookie };
        self.send_dump_to(&work, dump, to).await
    }
}
