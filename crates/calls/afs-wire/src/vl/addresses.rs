//! Calls on file servers and their addresses.

use super::SERVICE;
use crate::error::AbortCode;
use crate::ids::Uuid;
use crate::rpc::Nothing;
use crate::xdr::BoundedVec;
use std::net::Ipv4Addr;

/// Addresses of one server, or of all.
pub type Addresses = BoundedVec<Ipv4Addr, 500>;

/// Most addresses of one server.
pub const SERVER_ADDRESSES_MAX: usize = 15;

/// In [`ChangeAddr::old`]: remove the address in `new`.
pub const REMOVE_ADDRESS: Ipv4Addr = Ipv4Addr::BROADCAST;

xdr_struct! {
    /// Selects a server: `ListAddrByAttributes`.
    #[derive(Copy, Default)]
    pub struct AddressQuery {
        /// 1 by address, 2 by index, 4 by UUID; exactly one.
        pub mask: u32,
        /// Any of its addresses.
        pub address: u32,
        /// Its index among the servers, from 1.
        pub index: i32,
        /// Not used.
        pub spare: i32,
        /// Its UUID.
        pub uuid: Uuid,
    }
}

/// The one criterion of an [`AddressQuery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKey {
    /// Any of its addresses.
    Address(Ipv4Addr),
    /// Its index among the servers, from 1.
    Index(i32),
    /// Its UUID.
    Uuid(Uuid),
}

impl AddressQuery {
    /// The criterion.
    ///
    /// # Errors
    /// [`AbortCode::VL_BADMASK`] unless there is exactly one.
    pub fn key(&self) -> Result<ServerKey, AbortCode> {
        match self.mask {
            1 => Ok(ServerKey::Address(self.address.into())),
            2 => Ok(ServerKey::Index(self.index)),
            4 => Ok(ServerKey::Uuid(self.uuid)),
            _ => Err(AbortCode::VL_BADMASK),
        }
    }
}

impl From<ServerKey> for AddressQuery {
    fn from(key: ServerKey) -> Self {
        match key {
            ServerKey::Address(address) => Self { mask: 1, address: address.into(), ..Self::default() },
            ServerKey::Index(index) => Self { mask: 2, index, ..Self::default() },
            ServerKey::Uuid(uuid) => Self { mask: 4, uuid, ..Self::default() },
        }
    }
}

calls! {
    service SERVICE;

    /// Lists one word for each server: its address, or, beginning with 0xff, a handle of OpenAFS's database.
    515 "GetAddrs" GetAddrs { handle: i32, spare: i32 }
        -> GetAddrsReply {
            /// Zeros.
            callback: [u32; 4],
            count: i32,
            addresses: BoundedVec<u32, 500>,
        };

    /// Replaces the address of a server that has no UUID, or removes it.
    516 "ChangeAddr" ChangeAddr {
        /// The current address, or [`REMOVE_ADDRESS`].
        old: Ipv4Addr,
        /// The new address, or the one to remove.
        new: Ipv4Addr,
    } -> Nothing;

    /// Registers a file server's addresses; every file server does this when it starts.
    532 "RegisterAddrs" RegisterAddrs { uuid: Uuid, spare: i32, addresses: Addresses } -> Nothing;

    /// Reads a server's addresses.
    533 "GetAddrsU" GetAddrsU { query: AddressQuery }
        -> GetAddrsUReply {
            uuid: Uuid,
            /// Version of the address list.
            unique: u32,
            count: i32,
            addresses: Addresses,
        };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn exactly_one_criterion() {
        let key = ServerKey::Uuid(Uuid([0x80; 16]));
        let query = AddressQuery::from(key);
        assert_eq!(query.to_bytes().len(), 60);
        assert_eq!(AddressQuery::from_bytes(&query.to_bytes()).unwrap().key(), Ok(key));
        assert_eq!(AddressQuery { mask: 3, ..query }.key(), Err(AbortCode::VL_BADMASK));
    }
}
