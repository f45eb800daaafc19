//! By which ways the bytes of a volume's files may travel.

use std::fmt;

/// Where clients may read and write the bytes of a volume's files: a setting of the volume, in the terms of Gibson et al. 1997.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataRoute {
    /// `sad`: by calls alone.
    Calls,
    /// `sid`: by calls, and by the data path of the file server. The default.
    #[default]
    Server,
    /// `nasd`: the same, and reads at the drives themselves where they are on other hosts.
    Drives,
}

impl DataRoute {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Calls, Self::Server, Self::Drives];

    /// Its name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Calls => "sad",
            Self::Server => "sid",
            Self::Drives => "nasd",
        }
    }

    /// The two bits of the header; the default is 0, which older programs write.
    pub(crate) const fn bits(self) -> u8 {
        match self {
            Self::Server => 0,
            Self::Calls => 1,
            Self::Drives => 2,
        }
    }

    /// What the bits say. A value of a later program is the default.
    pub(crate) const fn of_bits(bits: u8) -> Self {
        match bits {
            1 => Self::Calls,
            2 => Self::Drives,
            _ => Self::Server,
        }
    }
}

impl fmt::Display for DataRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
