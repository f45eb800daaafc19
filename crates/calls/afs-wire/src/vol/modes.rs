//! Whether modes of directories close them.

/// Whether the mode of a directory takes everybody off its access list (`docs/protocol/extensions.md`, "Modes that close"): a
/// setting of the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Modes {
    /// `ignored`: access lists alone decide on directories, as in AFS-3. The default.
    #[default]
    Ignored,
    /// `close`: who administers a directory and gives it a mode without bits for group and others takes `system:anyuser` and
    /// `system:authuser` off its list.
    Close,
}

impl Modes {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Ignored, Self::Close];

    /// Its name in commands.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Close => "close",
        }
    }

    /// Its number in calls and in the bit of a volume's header; the default is 0, which older programs write.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Ignored => 0,
            Self::Close => 1,
        }
    }
}

setting!(Modes, "setting of modes");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Decode, Encode};

    #[test]
    fn numbers_and_names_are_read_back_and_others_refused() {
        for modes in Modes::ALL {
            assert_eq!(Modes::from_bytes(&modes.to_bytes()), Ok(modes));
            assert_eq!(Modes::of_name(modes.name()), Some(modes));
        }
        assert!(Modes::from_bytes(&2u32.to_be_bytes()).is_err() && Modes::of_name("Close").is_none());
    }
}
