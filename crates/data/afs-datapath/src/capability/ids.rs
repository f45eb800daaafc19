//! Identifiers of drives, epochs of keys, generations, holders and tickets.

use std::fmt;

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

/// A newtype of an unsigned integer with its XDR form.
macro_rules! id {
    ($(#[$meta:meta])* $name:ident($inner:ty)) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl Encode for $name {
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.0.to_be_bytes());
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
                r.array().map(|bytes| Self(<$inner>::from_be_bytes(*bytes)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:x}", self.0)
            }
        }
    };
}

id! {
    /// A drive, by 128 random bits that it keeps for its life.
    DriveId(u128)
}
id! {
    /// Number of a drive's key. A drive that gets another key gets another epoch, and refuses capabilities of earlier ones.
    KeyEpoch(u32)
}
impl KeyEpoch {
    /// That of the secret of a join key, which permits to give the drive its first key, and nothing else.
    pub const JOIN: Self = Self(0);

    /// The one that follows, if there is one.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

id! {
    /// Generation of a group of objects. A change of rights raises it; a capability is good for the generation in which it was
    /// sealed.
    Generation(u64)
}
id! {
    /// To whom a capability was given: which client and user, as the file server numbers them. It shows neither; where the file
    /// server keeps no numbers, [`DriveKey::holder`](super::DriveKey::holder) makes them.
    HolderId(u128)
}

id! {
    /// One of the chunk stores of a drive: each store of volumes has one of its own there, numbered by the file server.
    StoreNumber(u32)
}

id! {
    /// A transfer that a file server is to command, by 128 random bits of the client that waits for it.
    TransferId(u128)
}

/// A store whose bytes a drive holds, by 128 random bits that only its holder learns. Shown shortened: who knows it and is its
/// holder can commit it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TicketId(pub u128);

impl Encode for TicketId {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

impl Decode for TicketId {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(u128::from_be_bytes(*bytes)))
    }
}

impl fmt::Debug for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketId({:08x}..)", self.0 >> 96)
    }
}
