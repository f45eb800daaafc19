//! What the protection database can refuse, with the code a client is told.

use afs_wire::error::AbortCode;

use crate::LocationError;

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $code:ident;)*) => {
        /// A reason of the protection service to refuse a call
        /// (docs/protocol ptserver.md "8. Error codes (base 267264)").
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum Refusal { $($(#[$doc])* $name,)* }

        impl Refusal {
            /// The code that goes out in the abort.
            pub const fn code(self) -> AbortCode {
                match self { $(Refusal::$name => AbortCode::$code,)* }
            }
        }
    };
}

refusals! {
    /// The name belongs to another entry.
    NameExists = PREXIST;
    /// The id belongs to another entry, or the member is in the group already.
    IdExists = PRIDEXIST;
    /// The counter of ids is at its end.
    NoIds = PRNOIDS;
    /// No such user, group or membership.
    NoEntry = PRNOENT;
    /// The asker may not do this, or nobody may.
    Permission = PRPERM;
    /// A group is needed, and this is a user.
    NotGroup = PRNOTGROUP;
    /// A name that cannot be, or has the wrong prefix for its owner.
    BadName = PRBADNAM;
    /// An argument that makes no sense.
    BadArgument = PRBADARG;
    /// A quota is used up.
    NoMore = PRNOMORE;
    /// The group that is to own has no members.
    GroupEmpty = PRGROUPEMPTY;
    /// More members, groups or levels than there may be.
    TooMany = PRTOOMANY;
    /// The database contradicts itself.
    Damaged = PRDBBAD;
}

/// Why an operation on the protection database did not happen. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectionError {
    /// The request is refused by the rules of the service.
    #[error("the protection database refuses: {}", .0.code())]
    Refused(Refusal),
    /// The store beneath could not be read or written.
    #[error("the protection database's store failed: {0}")]
    Store(String),
    /// As [`LocationError::NoQuorum`].
    #[error("the servers that keep the database have no quorum")]
    NoQuorum,
}

impl ProtectionError {
    /// The code a client is told.
    pub fn code(&self) -> AbortCode {
        match self {
            ProtectionError::Refused(refusal) => refusal.code(),
            ProtectionError::Store(_) => AbortCode::PRDBFAIL,
            ProtectionError::NoQuorum => AbortCode::UNOQUORUM,
        }
    }
}

impl From<Refusal> for ProtectionError {
    fn from(refusal: Refusal) -> Self {
        ProtectionError::Refused(refusal)
    }
}

/// What the rows beneath say: they know damage and failures only.
impl From<LocationError> for ProtectionError {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::Store(why) => ProtectionError::Store(why),
            LocationError::NoQuorum => ProtectionError::NoQuorum,
            LocationError::Refused(_) => Refusal::Damaged.into(),
        }
    }
}
