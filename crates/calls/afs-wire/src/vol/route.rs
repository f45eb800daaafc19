//! By which ways the bytes of a volume's files may travel.

/// Where clients may read and write the bytes of a volume's files: a setting of the volume, in the terms of Gibson et al. 1997.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataRoute {
    /// `sad`: by calls alone.
    Calls,
    /// `sid`: by calls, and by the data path of the file server. The default.
    #[default]
    Server,
    /// `nasd`: the same, and reads and stores at the drives themselves where they are on other hosts.
    Drives,
    /// `netscsi`: as `nasd`, but the file server commands each transfer between drive and client.
    Commanded,
}

impl DataRoute {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Calls, Self::Server, Self::Commanded, Self::Drives];

    /// Its name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "sad",
            Self::Server => "sid",
            Self::Drives => "nasd",
            Self::Commanded => "netscsi",
        }
    }

    /// Its number in calls and in the two bits of a volume's header; the default is 0, which older programs write.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Server => 0,
            Self::Calls => 1,
            Self::Drives => 2,
            Self::Commanded => 3,
        }
    }
}

setting!(DataRoute, "way for bytes");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn numbers_and_names_are_read_back_and_others_refused() {
        for route in DataRoute::ALL {
            assert_eq!(DataRoute::from_bytes(&route.to_bytes()), Ok(route));
            assert_eq!(DataRoute::of_name(route.name()), Some(route));
        }
        assert!(DataRoute::from_bytes(&4u32.to_be_bytes()).is_err() && DataRoute::of_name("SAD").is_none());
    }
}
