//! Why a drive refuses a capability.

/// Why a drive refuses a capability, or one access by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Refusal {
    /// The proof is not that of these arguments on this connection.
    #[error("the proof of the capability is wrong")]
    Forged,
    /// Its time is over.
    #[error("the capability has expired")]
    Expired,
    /// It is for another drive.
    #[error("the capability is for another drive")]
    OtherDrive,
    /// It was sealed by a key that the drive no longer has, or never had.
    #[error("the capability is of another epoch of the drive's key")]
    OtherEpoch,
    /// The rights have changed since it was sealed.
    #[error("the capability was revoked")]
    Revoked,
    /// The object is not among those that it covers.
    #[error("the capability does not cover the object")]
    OtherObject,
    /// The bytes are beyond those that it covers.
    #[error("the capability does not cover the range")]
    OutOfRange,
    /// It does not permit this access, or the file's mode does not.
    #[error("the capability does not permit the access")]
    NotAllowed,
}

impl Refusal {
    /// All of them, in the order of their numbers on the wire.
    pub const ALL: [Self; 8] = [
        Self::Forged,
        Self::Expired,
        Self::OtherDrive,
        Self::OtherEpoch,
        Self::Revoked,
        Self::OtherObject,
        Self::OutOfRange,
        Self::NotAllowed,
    ];

    /// Its name among counters: lower-case words with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forged => "forged",
            Self::Expired => "expired",
            Self::OtherDrive => "other_drive",
            Self::OtherEpoch => "other_epoch",
            Self::Revoked => "revoked",
            Self::OtherObject => "other_object",
            Self::OutOfRange => "out_of_range",
            Self::NotAllowed => "not_allowed",
        }
    }

    /// Whether another capability for the same object may be honoured, so that it is worth asking the file server for one.
    #[must_use]
    pub const fn is_stale(self) -> bool {
        matches!(self, Self::Expired | Self::OtherEpoch | Self::Revoked | Self::OtherObject)
    }
}
