//! Volume service calls that delete volumes, and that record where they moved.

use std::sync::Arc;

use afs_rpc::Table;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::rpc::Nothing;
use afs_wire::vol::{self, TransactionId};

use super::{VolumeServer, errno};
use crate::guard::administrators;
use crate::volume_states::{Site, VolumeState};

type Server = Arc<VolumeServer>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table = administrators(table, |server: Server, call: vol::DeleteVolume| async move {
        server.delete(call.transaction).await
    });
    let table =
        administrators(
            table,
            |server: Server, call: vol::NukeVolume| async move { server.nuke(&call).await },
        );
    administrators(table, |server: Server, call: vol::SetForwarding| async move {
        let work = server.enter(call.transaction, "SetForwarding")?;
        // Kept as long as this process: afterwards clients get "not here", on which they ask the location
        // database as well.
        server.states.set(work.id(), Some(VolumeState::Moved));
        server.announce_change(work.id());
        Ok(())
    })
}

impl VolumeServer {
    async fn delete(self: &Arc<Self>, id: TransactionId) -> Result<Nothing, AbortCode> {
        let work = self.enter(id, "DeleteVolume")?;
        work.volume_to_change()?;
        self.erase(work.transaction().site()).await?;
        work.note(|transaction| transaction.deleted = true);
        Ok(())
    }

    async fn nuke(self: &Arc<Self>, call: &vol::NukeVolume) -> Result<Nothing, AbortCode> {
        let site = Site { volume: call.volume, partition: self.partition(call.partition)? };
        if self.store(site.partition)?.volume(site.volume).is_none() {
            return Err(errno(Errno::ENODEV));
        }
        let _hidden = self.enter_hidden(site, "NukeVolume")?;
        self.erase(site).await
    }

    /// Deletes a volume, and the promises of clients in it.
    pub(super) async fn erase(&self, site: Site) -> Result<Nothing, AbortCode> {
        let erased = self.store(site.partition)?.delete_volume(site.volume).await;
        erased.map_err(|error| self.code(site.volume, &error))?;
        self.announce_change(site.volume);
        Ok(())
    }
}
