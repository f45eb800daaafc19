//! Volume service call that creates a volume.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::VolumeSpec;
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vol;

use super::{VolumeServer, errno, new_name};
use crate::guard::{administrators, anyone};
use crate::subject::ADMIN;
use crate::volume_states::Site;

/// Quota of a new volume in KiB, until its tool sets another (docs/protocol volserver.md "5. Call
/// semantics").
const NEW_QUOTA: u32 = 5000;

type Server = Arc<VolumeServer>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table =
        administrators(
            table,
            |server: Server, call: vol::CreateVolume| async move { server.create(&call).await },
        );
    anyone(table, |_: Server, _: vol::SignalRestore| async move { Ok(()) })
}

impl VolumeServer {
    /// Creates a volume that stays invisible until its transaction publishes it.
    async fn create(self: &Arc<Self>, call: &vol::CreateVolume) -> Result<vol::CreateVolumeReply, AbortCode> {
        let name = new_name(&call.name)?;
        if call.volume.0 == 0 {
            return Err(errno(Errno::E2BIG));
        }
        let kind = call.kind.check().ok_or(errno(Errno::EINVAL))?;
        let site = Site { volume: call.volume, partition: self.partition(call.partition)? };
        self.check_free(site, call.parent)?;
        let hidden = self.enter_hidden(site, "CreateVolume")?;
        let spec = VolumeSpec {
            id: call.volume,
            name,
            kind,
            parent: call.parent,
            owner: ADMIN,
            max_quota: NEW_QUOTA,
            root: root(kind, call),
        };
        let made = self.store(site.partition)?.create_marked(spec).await;
        made.map_err(|error| self.code(call.volume, &error))?;
        let transaction = hidden.keep();
        self.transactions.note(transaction, |transaction| transaction.made = true);
        Ok(vol::CreateVolumeReply { volume: call.volume, transaction })
    }

    /// A volume may be on two partitions only during a move between them; the mover gives the volume itself
    /// as the parent.
    fn check_free(&self, site: Site, parent: VolumeId) -> Result<(), AbortCode> {
        let holds =
            |partition| self.partitions.store(partition).is_some_and(|s| s.volume(site.volume).is_some());
        let elsewhere =
            self.partitions.iter().any(|(partition, _)| partition != site.partition && holds(partition));
        let taken = holds(site.partition) || (elsewhere && parent != site.volume);
        if taken { Err(errno(Errno::EIO)) } else { Ok(()) }
    }
}

/// A read-write volume that is its own parent is about to be restored, root directory included.
fn root(kind: VolumeKind, call: &vol::CreateVolume) -> Option<Acl> {
    let to_be_filled = kind == VolumeKind::ReadWrite && call.parent == call.volume;
    (!to_be_filled).then(Acl::of_new_volume)
}
