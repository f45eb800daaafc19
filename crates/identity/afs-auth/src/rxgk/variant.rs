//! The two variants of rxgk.

/// Variant of rxgk: the security index, and the form of a token's contents. All else is the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Variant {
    /// Index 4: the drafts, OpenAFS and ourselves.
    OpenAfs,
    /// Index 6: AuriStor and the Linux kernel.
    Yfs,
}

impl Variant {
    /// The security index.
    #[must_use]
    pub const fn index(self) -> u8 {
        match self {
            Variant::OpenAfs => 4,
            Variant::Yfs => 6,
        }
    }

    /// The variant of a security index.
    #[must_use]
    pub const fn from_index(index: u8) -> Option<Self> {
        match index {
            4 => Some(Variant::OpenAfs),
            6 => Some(Variant::Yfs),
            _ => None,
        }
    }
}
