//! Partitions of a file server.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;
use std::str::FromStr;

/// A server partition: 0 is `/vicepa`, 25 `/vicepz`, 26 `/vicepaa`, 255 `/vicepiv`.
///
/// Source: `docs/protocol/volserver.md` "3.2 Partition numbering".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u8);

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |n: u8| char::from(b'a' + n % 26);
        match self.0.checked_sub(26) {
            None => write!(f, "/vicep{}", letter(self.0)),
            Some(n) => write!(f, "/vicep{}{}", letter(n / 26), letter(n)),
        }
    }
}

/// A text that is not the name of a partition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no partition: use /vicepa to /vicepiv, or a number from 0 to 255")]
pub struct BadPartition(pub String);

impl FromStr for PartitionId {
    type Err = BadPartition;

    /// A number, or `/vicepa`, `vicepa`, `a`.
    fn from_str(text: &str) -> Result<Self, BadPartition> {
        let bad = || BadPartition(text.chars().take(64).collect());
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return text.parse().map(Self).map_err(|_| bad());
        }
        let name = text.strip_prefix('/').unwrap_or(text);
        let letters = name.strip_prefix("vicep").unwrap_or(name);
        let value = |c: u8| c.is_ascii_lowercase().then(|| u32::from(c - b'a'));
        let number = match letters.as_bytes() {
            [one] => value(*one),
            [first, second] => value(*first).zip(value(*second)).map(|(i, j)| 26 + 26 * i + j),
            _ => None,
        };
        number.and_then(|n| u8::try_from(n).ok()).map(Self).ok_or_else(bad)
    }
}

impl Encode for PartitionId {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode for PartitionId {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let value = r.u32()?;
        u8::try_from(value).map(Self).map_err(|_| DecodeError::BadValue { what: "partition", value })
    }
}

id! {
    /// A partition number from a peer, not yet checked: services answer an invalid one with a code of their own.
    pub struct PartitionNumber(i32);
}

impl PartitionNumber {
    /// The partition, if the number is valid.
    pub fn check(self) -> Option<PartitionId> {
        u8::try_from(self.0).ok().map(PartitionId)
    }
}

impl From<PartitionId> for PartitionNumber {
    fn from(partition: PartitionId) -> Self {
        Self(partition.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (number, name) in [(0, "/vicepa"), (25, "/vicepz"), (26, "/vicepaa"), (255, "/vicepiv")] {
            assert_eq!(PartitionId(number).to_string(), name);
        }
        for number in 0..=255 {
            assert_eq!(PartitionId(number).to_string().parse(), Ok(PartitionId(number)));
            assert_eq!(number.to_string().parse(), Ok(PartitionId(number)));
        }
        assert_eq!("vicepb".parse(), Ok(PartitionId(1)));
        assert_eq!("b".parse(), Ok(PartitionId(1)));
        for bad in ["", "/vicep", "/vicepiw", "256", "/vicepA", "/vicepaaa", "1a"] {
            assert!(bad.parse::<PartitionId>().is_err(), "{bad}");
        }
    }
}
