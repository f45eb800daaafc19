//! What a capability permits: a set of bits.

use std::fmt;
use std::ops::BitOr;

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

/// What a capability permits. Bits without a meaning are refused when it is decoded.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Access(u32);

impl Access {
    /// Reading bytes.
    pub const READ: Self = Self(1);
    /// Giving bytes to a store.
    pub const WRITE: Self = Self(2);
    /// The mode bits of a file do not matter: for administrators, and for the owner's own files.
    pub const ANY_MODE: Self = Self(4);

    /// Everything that a file server does with the chunks of its store.
    pub const MANAGE: Self = Self(8);
    /// Of a capability to stage chunks: each is taken as the file server commands it, and no other.
    pub const COMMANDED: Self = Self(16);

    const ALL: u32 = 31;

    /// Whether it permits all that `other` does.
    #[must_use]
    pub const fn permits(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::READ, "read"),
            (Self::WRITE, "write"),
            (Self::ANY_MODE, "any mode"),
            (Self::MANAGE, "manage"),
            (Self::COMMANDED, "commanded"),
        ];
        f.debug_set()
            .entries(names.iter().filter(|(bit, _)| self.permits(*bit)).map(|(_, name)| name))
            .finish()
    }
}

impl Encode for Access {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for Access {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.u32()? {
            value if value & !Self::ALL == 0 => Ok(Self(value)),
            value => Err(DecodeError::BadValue { what: "set of accesses", value }),
        }
    }
}
