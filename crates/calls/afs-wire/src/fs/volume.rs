//! Calls on whole volumes.

use super::{Name, PathText, SERVICE};
use crate::ids::{Fid, VolumeId};
use crate::rpc::Nothing;
use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

xdr_struct! {
    /// A volume's state and quota: `AFSFetchVolumeStatus`, 48 bytes.
    #[derive(Copy)]
    pub struct VolumeStatus {
        /// The volume asked for.
        pub id: VolumeId,
        /// The read-write volume it belongs to.
        pub parent: VolumeId,
        /// Clients may use it.
        pub online: bool,
        /// It is not taken out of service.
        pub in_service: bool,
        /// Approved by an administrator.
        pub blessed: bool,
        /// It is damaged.
        pub needs_salvage: bool,
        /// Whether it can be written: 1 for a read-write volume, 0 for read-only and backup volumes.
        pub writable: bool,
        /// Reserved space, in KiB. Not used.
        pub quota_min: u32,
        /// Quota in KiB; 0 is no limit.
        pub quota_max: u32,
        /// Space in use, in KiB.
        pub blocks_used: u32,
        /// Free space on its partition, in KiB, clamped to 2^31 - 1.
        pub partition_blocks_free: u32,
        /// Size of its partition, in KiB, clamped to 2^31 - 1.
        pub partition_blocks: u32,
    }
}

/// Requested changes of a volume: `AFSStoreVolumeStatus`. `None` leaves a field unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetVolumeStatus {
    /// Reserved space, in KiB.
    pub quota_min: Option<u32>,
    /// Quota in KiB; 0 is no limit.
    pub quota_max: Option<u32>,
}

impl Encode for SetVolumeStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        let mask = u32::from(self.quota_min.is_some()) | u32::from(self.quota_max.is_some()) << 1;
        [mask, self.quota_min.unwrap_or_default(), self.quota_max.unwrap_or_default()].encode(out);
    }
}

impl Decode for SetVolumeStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [mask, min, max] = <[u32; 3]>::decode(r)?;
        Ok(Self { quota_min: (mask & 1 != 0).then_some(min), quota_max: (mask & 2 != 0).then_some(max) })
    }
}

xdr_struct! {
    /// Sites of a volume, from the time before the location service: `VolumeInfo`.
    #[derive(Copy, Default)]
    pub struct VolumeInfo {
        /// The volume.
        pub id: VolumeId,
        /// Its type.
        pub kind: i32,
        /// The volumes of its group by type.
        pub ids_by_type: [VolumeId; 5],
        /// Number of valid `servers`.
        pub server_count: u32,
        /// The servers.
        pub servers: [u32; 8],
    }
}

calls! {
    service SERVICE;

    /// Obsolete; servers answer VNOVOL.
    148 "GetVolumeInfo" GetVolumeInfo { name: Name } -> GetVolumeInfoReply { info: VolumeInfo };

    /// Reads a volume's state and quota. Needs no right.
    149 "GetVolumeStatus" GetVolumeStatus { volume: VolumeId }
        -> GetVolumeStatusReply {
            status: VolumeStatus,
            name: Name,
            /// Why it is offline.
            offline_message: PathText,
            /// Message of the day; always empty.
            motd: PathText,
        };

    /// Changes a volume's quota, name or messages. For administrators.
    150 "SetVolumeStatus" StoreVolumeStatus {
        volume: VolumeId,
        status: SetVolumeStatus,
        /// New name in the volume's header, unless empty.
        name: Name,
        /// New message, unless empty.
        offline_message: PathText,
        /// Ignored.
        motd: PathText,
    } -> Nothing;

    /// Obsolete; servers answer VNOVOL.
    154 "NGetVolumeInfo" NGetVolumeInfo { name: Name }
        -> NGetVolumeInfoReply { info: VolumeInfo, ports: [u16; 8] };
}

xdr_struct! {
    /// Arguments of the residency commands of MR-AFS.
    pub struct FsCommand {
        /// What to do.
        pub command: i32,
        /// On what.
        pub fid: Fid,
        /// Numbers.
        pub longs: [i64; 3],
        /// More numbers.
        pub ints: [u32; 200],
        /// A text.
        pub text: crate::xdr::Chars<256>,
    }
}

xdr_struct! {
    /// Results of the residency commands of MR-AFS.
    pub struct FsCommandResult {
        /// Outcome.
        pub code: i32,
        /// Status of the object.
        pub status: super::Status,
        /// Numbers.
        pub longs: [i64; 3],
        /// More numbers.
        pub ints: [u32; 200],
        /// A text.
        pub text: crate::xdr::Chars<256>,
    }
}

impl VolumeInfo {
    /// The servers as addresses.
    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.servers.iter().take(self.server_count as usize).map(|&address| Ipv4Addr::from(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_masks() {
        let mut wire = [0u8; 48];
        wire[11] = 1;
        let status = VolumeStatus::from_bytes(&wire).unwrap();
        assert!(status.online && !status.writable);
        assert_eq!(status.to_bytes(), wire);
        let set = SetVolumeStatus { quota_max: Some(5000), quota_min: None };
        assert_eq!(set.to_bytes(), [0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x13, 0x88]);
        assert_eq!(SetVolumeStatus::from_bytes(&set.to_bytes()), Ok(set));
        assert_eq!(VolumeInfo::default().to_bytes().len(), 64);
    }
}
