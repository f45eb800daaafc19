//! The network that an entry of a table is counted for: an IPv4 address, or an IPv6 /64 within a /48.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where a peer is. A host of IPv6 has all addresses of a /64 (RFC 4291, 2.5.1), and a site has a /48 (RFC 6177); an IPv4
/// address is both by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Origin {
    /// The first half of an IPv6 address; an IPv4 address has a number of its own, where no IPv6 network is.
    host: u64,
    site: u64,
}

impl Origin {
    /// The one network of all source addresses that are not validated. A sender that forges them could otherwise choose which network has
    /// most entries.
    pub const FORGEABLE: Self = Self { host: u64::MAX, site: u64::MAX };

    /// Where a peer is that receives at this address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => {
                let number = V4 << 32 | u64::from(v4.to_bits());
                Self { host: number, site: number }
            }
            IpAddr::V6(v6) => {
                let host = (v6.to_bits() >> 64) as u64;
                Self { host, site: host >> 16 << 16 }
            }
        }
    }

    /// The address of an IPv4 host, or that of the network of an IPv6 one.
    #[must_use]
    pub fn host(self) -> IpAddr {
        match self.host >> 32 {
            V4 => Ipv4Addr::from_bits(self.host as u32).into(),
            _ => Ipv6Addr::from_bits(u128::from(self.host) << 64).into(),
        }
    }

    pub(super) const fn host_number(self) -> u64 {
        self.host
    }

    pub(super) const fn site_number(self) -> u64 {
        self.site
    }

    /// Whether host and site are two networks, though perhaps with one number: so it is in IPv6.
    pub(super) const fn is_within(self) -> bool {
        self.host >> 32 != V4 && self.host != Self::FORGEABLE.host
    }
}

/// The first half of the numbers of IPv4 addresses.
const V4: u64 = 0xffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_counted_for_its_64_and_48() {
        let of = |text: &str| Origin::of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1").site, of("192.0.2.2").site);
        assert_eq!(of("192.0.2.1").host(), IpAddr::from([192, 0, 2, 1]));
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        let (one, other) = (of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert!(one.host != other.host && one.site == other.site);
        assert_ne!(one.site, of("2001:db8:2:2::1").site);
        assert_eq!(one.host(), "2001:db8:1:2::".parse::<IpAddr>().unwrap());
    }
}
