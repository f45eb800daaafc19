//! Sets of rights in access lists.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Not};
use std::str::FromStr;

/// A set of rights. Source: `docs/protocol/fileserver.md` "5.2 Rights".
///
/// The text form is the letters in the order `rlidwka`, then `A`–`H`, which have no meaning to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rights(pub u32);

impl Rights {
    /// No right.
    pub const NONE: Self = Self(0);
    /// `r`: read files.
    pub const READ: Self = Self(0x01);
    /// `w`: change existing files, write-lock.
    pub const WRITE: Self = Self(0x02);
    /// `i`: add entries.
    pub const INSERT: Self = Self(0x04);
    /// `l`: list, read access lists and links.
    pub const LOOKUP: Self = Self(0x08);
    /// `d`: remove entries.
    pub const DELETE: Self = Self(0x10);
    /// `k`: read-lock.
    pub const LOCK: Self = Self(0x20);
    /// `a`: change the access list.
    pub const ADMINISTER: Self = Self(0x40);
    /// The seven rights together.
    pub const ALL: Self = Self(0x7f);

    /// Whether the set contains every right of `wanted`.
    pub const fn contains(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// Whether the set contains any right of `wanted`.
    pub const fn intersects(self, wanted: Self) -> bool {
        self.0 & wanted.0 != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

const LETTERS: [(char, u32); 15] = [
    ('r', 0x01),
    ('l', 0x08),
    ('i', 0x04),
    ('d', 0x10),
    ('w', 0x02),
    ('k', 0x20),
    ('a', 0x40),
    ('A', 0x0100_0000),
    ('B', 0x0200_0000),
    ('C', 0x0400_0000),
    ('D', 0x0800_0000),
    ('E', 0x1000_0000),
    ('F', 0x2000_0000),
    ('G', 0x4000_0000),
    ('H', 0x8000_0000),
];

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters: String = LETTERS.iter().filter(|(_, bit)| self.0 & bit != 0).map(|(c, _)| c).collect();
        f.pad(&letters)
    }
}

/// A rights text with an unknown letter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no right; use letters of rlidwka or A-H, or one of: read, write, all, none")]
pub struct BadRights(pub String);

impl FromStr for Rights {
    type Err = BadRights;

    /// Letters in any order, or one of the shorthands `read` (rl), `write` (rlidwk), `all`, `none`.
    fn from_str(text: &str) -> Result<Self, BadRights> {
        match text {
            "read" => return Ok(Self(0x09)),
            "write" => return Ok(Self(0x3f)),
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        text.chars().try_fold(Self::NONE, |rights, letter| {
            let bit = LETTERS.iter().find(|(c, _)| *c == letter).map(|(_, bit)| *bit);
            bit.map(|bit| rights | Self(bit)).ok_or_else(|| BadRights(text.into()))
        })
    }
}

impl BitOr for Rights {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Rights {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Rights {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Not for Rights {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

impl Encode for Rights {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for Rights {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.u32().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_both_ways() {
        assert_eq!(Rights::ALL.to_string(), "rlidwka");
        assert_eq!("akwdilr".parse(), Ok(Rights::ALL));
        assert_eq!("write".parse::<Rights>().unwrap().to_string(), "rlidwk");
        assert_eq!("rlAH".parse(), Ok(Rights(0x8100_0009)));
        assert_eq!("".parse(), Ok(Rights::NONE));
        assert_eq!("rx".parse::<Rights>(), Err(BadRights("rx".into())));
    }
}
