//! Whether the directories of a volume may be leased to clients.

use crate::xdr::{Decode, DecodeError, Encode, Reader};
use std::fmt;

/// Whether a file server lends the directories of a volume to clients that ask for it (`docs/protocol/extensions.md`, "Leases of
/// directories"): a setting of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lending {
    /// `on`: to clients that ask. The default.
    #[default]
    On,
    /// `off`: to no client, so that what a `close` has acknowledged is at the server, whatever the options of the mount.
    Off,
}

impl Lending {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::On, Self::Off];

    /// Its name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Its number in calls and in the bit of a volume's header; the default is 0, which older programs write.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::On => 0,
            Self::Off => 1,
        }
    }

    /// That of a number.
    #[must_use]
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|lending| u32::from(lending.number()) == number)
    }

    /// That of a name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lending| lending.name() == name)
    }
}

impl Encode for Lending {
    fn encode(&self, out: &mut Vec<u8>) {
        u32::from(self.number()).encode(out);
    }
}

impl Decode for Lending {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let value = r.u32()?;
        Self::of_number(value).ok_or(DecodeError::BadValue { what: "setting of leases", value })
    }
}

impl fmt::Display for Lending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_read_back_and_others_refused() {
        for lending in Lending::ALL {
            assert_eq!(Lending::from_bytes(&lending.to_bytes()), Ok(lending));
            assert_eq!(Lending::of_name(lending.name()), Some(lending));
        }
        assert!(Lending::from_bytes(&2u32.to_be_bytes()).is_err() && Lending::of_name("On").is_none());
    }
}
