//! Volume service call that sends a volume to another server.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::dump::VolumeDump;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::UnixSeconds;
use afs_wire::rpc::Nothing;
use afs_wire::vol::{self, Destination, RestoreCookie, TransactionId};

use super::dump::forwarded;
use super::peers::Delivery;
use super::work::Work;
use super::{VolumeServer, errno};
use crate::flow::{Stopped, pour};
use crate::guard::administrators;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = administrators(table, |server: Arc<VolumeServer>, call: vol::Forward| async move {
        let work = server.enter(call.transaction, "Forward")?;
        let dump = VolumeDump::new(work.volume()?, forwarded(call.from_date));
        let to = (&call.destination, call.destination_transaction);
        server.send_dump_to(&work, dump, to, call.from_date, call.cookie).await
    });
    administrators(table, |server: Arc<VolumeServer>, call: vol::ForwardDifference| async move {
        server.forward_difference(&call).await
    })
}

/// A server and a transaction there.
type To<'a> = (&'a Destination, TransactionId);

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
        let dump = VolumeDump::difference(volume, base);
        let to = (&call.destination, call.destination_transaction);
        self.send_dump_to(&work, dump, to, UnixSeconds(1), call.cookie).await
    }

    /// The reply is the other server's.
    async fn send_dump_to(
        self: &Arc<Self>,
        work: &Work,
        dump: VolumeDump,
        (to, into): To<'_>,
        since: UnixSeconds,
        cookie: RestoreCookie,
    ) -> Result<Nothing, AbortCode> {
        let mut dump = self.prepare(work, dump, self.takes_holes(to).await?).await?;
        let mut delivery = Delivery::begin(self, to, into, since, cookie).await?;
        match pour(&mut dump, &mut delivery).await {
            Ok(()) => delivery.finish().await,
            Err(Stopped::Sink(code)) => Err(code),
            Err(Stopped::Volume(error)) => {
                let code = self.code(work.id(), &error);
                delivery.give_up(code);
                Err(code)
            }
        }
    }
}
