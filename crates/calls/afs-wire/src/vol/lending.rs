//! Whether the directories of a volume may be leased to clients.

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
}

setting!(Lending, "setting of leases");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn numbers_and_names_are_read_back_and_others_refused() {
        for lending in Lending::ALL {
            assert_eq!(Lending::from_bytes(&lending.to_bytes()), Ok(lending));
            assert_eq!(Lending::of_name(lending.name()), Some(lending));
        }
        assert!(Lending::from_bytes(&2u32.to_be_bytes()).is_err() && Lending::of_name("On").is_none());
    }
}
