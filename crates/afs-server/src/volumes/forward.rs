//! Sending a volume to another server.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::dump::VolumeDump;
use afs_wire::error::AbortCode;
use afs_wire::rpc::Nothing;
use afs_wire::vol;

use super::VolumeServer;
use super::dump::forwarded;
use super::peers::Delivery;
use crate::guard::administrators;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    administrators(table, |server: Arc<VolumeServer>, call: vol::Forward| async move {
        server.forward(&call).await
    })
}

impl VolumeServer {
    /// What the other side says is the answer.
    async fn forward(self: &Arc<Self>, call: &vol::Forward) -> Result<Nothing, AbortCode> {
        let work = self.enter(call.transaction, "Forward")?;
        let mut dump = VolumeDump::new(work.volume()?, forwarded(call.from_date));
        let (to, into) = (&call.destination, call.destination_transaction);
        let mut delivery = Delivery::begin(self, to, into, call.from_date, call.cookie).await?;
        loop {
            match dump.next().await {
                Ok(Some(piece)) => delivery.send(piece).await?,
                Ok(None) => return delivery.finish().await,
                Err(error) => {
                    let code = self.code(work.id(), &error);
                    delivery.give_up(code);
                    return Err(code);
                }
            }
        }
    }
}
