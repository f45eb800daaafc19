//! What a file server says of its drive: where it is, and the fingerprint of its key.

use std::net::{IpAddr, SocketAddr};

use afs_datapath::capability::DriveId;
use afs_datapath::session::{Fingerprint, Security};
use afs_datapath::{MINIMUM_SIZE, addresses};
use afs_wire::fs::{DataPathReply, DriveAddresses, LayoutDrive};

use crate::config::DataPathConfig;

/// The reply of the call DataPath, as far as it is used here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Offer {
    pub drive: DriveId,
    /// TLS with a pinned key, or nothing where both sides permit that.
    pub security: Security,
    /// In order of preference, not empty.
    pub addresses: Vec<SocketAddr>,
    /// Smaller ranges are moved by calls.
    pub minimum_size: u64,
}

impl Offer {
    /// What the server that was called at an address has said. `None` if its drive cannot be reached.
    pub fn new(reply: &DataPathReply, called: SocketAddr, config: &DataPathConfig) -> Option<Offer> {
        Self::at(reply, (called.ip(), called.ip()), config)
    }

    /// The drive that a layout names, which came from the server that was called at an address. `None` if it cannot be used from here.
    pub fn of_layout(told: &LayoutDrive, called: IpAddr, config: &DataPathConfig) -> Option<Offer> {
        // Without TLS there is no key to be proved.
        if told.clear && !config.allow_clear {
            return None;
        }
        let LayoutDrive { port, clear, drive, fingerprint, .. } = *told;
        let addresses = DriveAddresses::first_of([told.address]);
        let reply = DataPathReply { port, clear, minimum_size: 0, drive, fingerprint, addresses };
        Self::at(&reply, (called, told.address.into()), config)
    }

    /// The drive that is known to this machine's options by an address.
    fn at(
        reply: &DataPathReply,
        (called, known): (IpAddr, IpAddr),
        config: &DataPathConfig,
    ) -> Option<Offer> {
        let security = match config.allow_clear && reply.clear {
            true => Security::Clear,
            false => Security::Tls(Fingerprint(reply.fingerprint.0)),
        };
        let addresses = match config.addresses.get(&known) {
            Some(address) => vec![*address],
            None => addresses(reply, called),
        };
        let minimum_size = config.minimum_size.unwrap_or(reply.minimum_size.max(MINIMUM_SIZE));
        let drive = DriveId(u128::from_be_bytes(reply.drive.0));
        (!addresses.is_empty()).then_some(Offer { drive, security, addresses, minimum_size })
    }

    /// Whether a connection made for one offer may serve the other: the same drive with the same key. Without a key it must be
    /// at the same address too.
    pub fn is_same_drive(&self, other: &Offer) -> bool {
        let is_clear = self.security == Security::Clear;
        self.drive == other.drive
            && self.security == other.security
            && (!is_clear || self.addresses == other.addresses)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use afs_wire::xdr::Fixed;

    use super::*;

    const CALLED: ([u8; 4], u16) = ([10, 0, 1, 1], 7000);

    fn reply(addresses: &[[u8; 4]]) -> DataPathReply {
        DataPathReply {
            port: 7100,
            clear: true,
            minimum_size: 1000,
            drive: Fixed([1; 16]),
            fingerprint: Fixed([2; 32]),
            addresses: DriveAddresses::first_of(addresses.iter().map(|octets| Ipv4Addr::from(*octets))),
        }
    }

    fn offer(addresses: &[[u8; 4]], config: &DataPathConfig) -> Option<Offer> {
        Offer::new(&reply(addresses), CALLED.into(), config)
    }

    #[test]
    fn connections_go_to_hosts_only_and_first_to_the_one_that_was_called() {
        let at = |addresses: &[[u8; 4]]| {
            let offer = offer(addresses, &DataPathConfig::default());
            offer.map(|offer| offer.addresses).unwrap_or_default()
        };
        let (called, other): (SocketAddr, SocketAddr) =
            (([10, 0, 1, 1], 7100).into(), ([10, 0, 9, 9], 7100).into());
        assert_eq!(at(&[]), [called]);
        assert_eq!(at(&[[10, 0, 9, 9], [10, 0, 1, 1]]), [called, other]);
        for nobodys in [[0, 0, 0, 0], [224, 0, 0, 1], [255; 4], [127, 0, 0, 1]] {
            assert!(at(&[nobodys]).is_empty(), "{nobodys:?}");
        }
        assert!(
            Offer::new(&DataPathReply { port: 0, ..reply(&[]) }, CALLED.into(), &DataPathConfig::default())
                .is_none()
        );
    }

    #[test]
    fn this_machine_decides_on_addresses_sizes_and_tls() {
        let default = offer(&[], &DataPathConfig::default()).unwrap();
        assert_eq!(default.security, Security::Tls(Fingerprint([2; 32])));
        assert_eq!(default.minimum_size, MINIMUM_SIZE);
        let own: SocketAddr = ([192, 0, 2, 1], 9).into();
        let config = DataPathConfig {
            minimum_size: Some(7),
            addresses: [(IpAddr::from([10, 0, 1, 1]), own)].into(),
            allow_clear: true,
            ..DataPathConfig::default()
        };
        let offer = offer(&[[10, 0, 9, 9]], &config).unwrap();
        assert_eq!((offer.security, offer.minimum_size, offer.addresses), (Security::Clear, 7, vec![own]));
        let tls_only = DataPathReply { clear: false, ..reply(&[]) };
        let offer = Offer::new(&tls_only, CALLED.into(), &config).unwrap();
        assert_eq!(offer.security, Security::Tls(Fingerprint([2; 32])));
    }
}
