//! What clients are told of the drive: the reply to DataPath.

use std::net::Ipv4Addr;

use afs_datapath::capability::DriveId;
use afs_wire::fs::{DataPathReply, DriveAddresses};
use afs_wire::xdr::Fixed;

/// Where clients reach the drive, and how they know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DriveOffer {
    /// TCP port.
    pub(super) port: u16,
    /// Whether it accepts connections without TLS too.
    pub(super) clear: bool,
    /// Bytes below which a transfer should be a call.
    pub(super) minimum_size: u64,
    /// Addresses, the best one first, at most 16; none means those of the file server.
    pub(super) addresses: Vec<Ipv4Addr>,
    /// SHA-256 of the drive's public key.
    pub(super) fingerprint: [u8; 32],
}

impl DriveOffer {
    pub(super) fn reply(&self, drive: DriveId) -> DataPathReply {
        DataPathReply {
            port: self.port,
            clear: self.clear,
            minimum_size: self.minimum_size,
            drive: Fixed(drive.0.to_be_bytes()),
            fingerprint: Fixed(self.fingerprint),
            addresses: DriveAddresses::first_of(self.addresses.iter().copied()),
        }
    }
}
