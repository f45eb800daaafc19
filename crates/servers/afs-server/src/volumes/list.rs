//! Volume service calls that list volumes.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::VolumeHeader;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, PartitionNumber, VolumeId};
use afs_wire::rpc::{Opcode, Request};
use afs_wire::vol::{self, VolumeXInfo};
use afs_wire::xdr::BoundedVec;

use super::info::number_only;
use super::{VolumeServer, errno};
use crate::guard::anyone;
use crate::volume_states::is_published;

/// Most volumes in one reply. A store keeps each header in memory, so more are unlikely.
const LISTED_MAX: usize = 65_536;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    type Server = Arc<VolumeServer>;
    let table = table.refuse(Opcode(vol::GetNthVolume::OPCODE), AbortCode::VOLSERNO_OP);
    let table = anyone(table, |server: Server, call: vol::ListVolumes| async move {
        let (partition, headers) = server.headers(call.partition)?;
        let infos = headers.iter().map(|header| {
            if call.flags == 0 { number_only(header.id) } else { server.info(partition, header) }
        });
        Ok(vol::ListVolumesReply { volumes: BoundedVec::first_of(infos) })
    });
    let table = anyone(table, |server: Server, call: vol::XListVolumes| async move {
        let (partition, headers) = server.headers(call.partition)?;
        let infos = headers.iter().map(|header| {
            let id = header.id;
            if call.flags == 0 {
                VolumeXInfo { id, ..VolumeXInfo::default() }
            } else {
                server.xinfo(partition, header)
            }
        });
        Ok(vol::XListVolumesReply { volumes: BoundedVec::first_of(infos) })
    });
    let table = anyone(table, |server: Server, call: vol::ListOneVolume| async move {
        let (partition, header) = server.header(call.partition, call.volume)?;
        let info = server.info(partition, &header);
        Ok(vol::ListVolumesReply { volumes: BoundedVec::first_of([info]) })
    });
    anyone(table, |server: Server, call: vol::XListOneVolume| async move {
        let (partition, header) = server.header(call.partition, call.volume)?;
        let info = server.xinfo(partition, &header);
        Ok(vol::XListVolumesReply { volumes: BoundedVec::first_of([info]) })
    })
}

impl VolumeServer {
    fn headers(&self, number: PartitionNumber) -> Result<(PartitionId, Vec<Arc<VolumeHeader>>), AbortCode> {
        let partition = self.partition(number)?;
        let volumes = self.partitions.store(partition).map(|store| store.volumes()).unwrap_or_default();
        let headers = volumes.iter().map(|volume| volume.header());
        let listed = headers.filter(|header| is_published(header)).take(LISTED_MAX);
        Ok((partition, listed.collect()))
    }

    /// The header of a volume; ENODEV if there is none, which the tools rely on (docs/protocol volserver.md
    /// "9. Traps").
    fn header(
        &self,
        number: PartitionNumber,
        id: VolumeId,
    ) -> Result<(PartitionId, Arc<VolumeHeader>), AbortCode> {
        let partition = self.partition(number)?;
        let volume = self.partitions.store(partition).and_then(|store| store.volume(id));
        Ok((partition, volume.ok_or(errno(Errno::ENODEV))?.header()))
    }
}
