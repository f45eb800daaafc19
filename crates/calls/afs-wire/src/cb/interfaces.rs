//! Identity and addresses of a client.

use crate::ids::Uuid;
use crate::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

/// Most addresses in one [`InterfaceAddr`].
pub const INTERFACES_MAX: usize = 32;

/// One address of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The address.
    pub address: Ipv4Addr,
    /// Its subnet mask.
    pub netmask: Ipv4Addr,
    /// Largest packet in bytes.
    pub mtu: u32,
}

/// A client's identity and addresses: `interfaceAddr`, 432 bytes whatever the number of addresses.
///
/// Servers do not identify clients by the addresses; they are alternative routes to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceAddr {
    /// The client's UUID.
    pub uuid: Uuid,
    /// Its addresses.
    pub interfaces: BoundedVec<Interface, INTERFACES_MAX>,
}

impl InterfaceAddr {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = 432;

    fn column(&self, value: impl Fn(&Interface) -> u32) -> [u32; INTERFACES_MAX] {
        let mut column = [0; INTERFACES_MAX];
        for (to, interface) in column.iter_mut().zip(&self.interfaces) {
            *to = value(interface);
        }
        column
    }
}

impl Encode for InterfaceAddr {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.interfaces.len() as u32).encode(out);
        self.uuid.encode(out);
        self.column(|interface| interface.address.into()).encode(out);
        self.column(|interface| interface.netmask.into()).encode(out);
        self.column(|interface| interface.mtu).encode(out);
    }
}

impl Decode for InterfaceAddr {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = r.count(INTERFACES_MAX)?;
        let uuid = Uuid::decode(r)?;
        let columns = <[[u32; INTERFACES_MAX]; 3]>::decode(r)?;
        let [addresses, netmasks, mtus] = columns;
        let interfaces = addresses.into_iter().zip(netmasks).zip(mtus).take(count);
        let interfaces = interfaces.map(|((address, netmask), mtu)| Interface {
            address: address.into(),
            netmask: netmask.into(),
            mtu,
        });
        Ok(Self { uuid, interfaces: BoundedVec::first_of(interfaces) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn always_432_bytes() {
        let interface =
            Interface { address: [10, 1, 2, 3].into(), netmask: [255, 255, 255, 0].into(), mtu: 1500 };
        let mut addr = InterfaceAddr { uuid: Uuid([0x8f; 16]), ..InterfaceAddr::default() };
        assert_eq!(addr.to_bytes().len(), 432);
        addr.interfaces.push(interface).unwrap();
        let wire = addr.to_bytes();
        assert_eq!(wire.len(), InterfaceAddr::WIRE_LEN);
        assert_eq!(wire[48..52], [10, 1, 2, 3]);
        assert_eq!(InterfaceAddr::from_bytes(&wire), Ok(addr));
    }

    #[test]
    fn more_than_32_or_fewer_than_0_interfaces_are_refused() {
        let mut wire = InterfaceAddr::default().to_bytes();
        wire[3] = 33;
        assert!(InterfaceAddr::from_bytes(&wire).is_err());
        wire[..4].fill(0xff);
        assert!(InterfaceAddr::from_bytes(&wire).is_err());
    }
}
