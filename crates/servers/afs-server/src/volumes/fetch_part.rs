//! Volume service call that reads bytes of one version of a file, for a server whose own copy is damaged.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::VolumeError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::vol::{self, PART_MAX};
use afs_wire::xdr::ByteString;

use super::{VolumeServer, errno};
use crate::guard::administrators;
use crate::volume_states::is_published;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    administrators(
        table,
        |server: Arc<VolumeServer>, call: vol::FetchPart| async move { server.part(call).await },
    )
}

impl VolumeServer {
    /// Checks no access list: a repair may read all of a volume, as a dump may.
    async fn part(&self, call: vol::FetchPart) -> Result<vol::FetchPartReply, AbortCode> {
        let vol::FetchPart { fid, data_version, position, length } = call;
        if length as usize > PART_MAX {
            return Err(errno(Errno::EINVAL));
        }
        let volume = self.partitions.volume(fid.volume).ok_or(AbortCode::VNOVOL)?;
        if !is_published(&volume.header()) {
            return Err(AbortCode::VNOVOL);
        }
        let failed = |error: VolumeError| self.code(fid.volume, &error);
        let mut reader = volume.read_data(fid, position, length.into()).map_err(failed)?;
        if reader.record().is_directory() || reader.record().data_version != data_version {
            return Err(errno(Errno::ESTALE));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        while let Some(piece) = reader.next().await.map_err(failed)? {
            bytes.extend_from_slice(&piece);
        }
        let bytes = ByteString::new(bytes).map_err(|_| errno(Errno::EIO))?;
        Ok(vol::FetchPartReply { bytes })
    }
}
