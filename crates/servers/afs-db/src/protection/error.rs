//! Errors of the protection database, with their codes on the wire.

use afs_wire::error::AbortCode;

use crate::LocationError;

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $code:ident;)*) => {
        /// Why the protection service refuses a call (docs/protocol ptserver.md "8. Error codes (base
        /// 267264)").
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum Refusal { $($(#[$doc])* $name,)* }

        impl Refusal {
            /// The abort code.
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
    /// The caller may not do this, or no caller may.
    Permission = PRPERM;
    /// The entry is a user where a group is needed.
    NotGroup = PRNOTGROUP;
    /// An invalid name, or one with the wrong prefix for its owner.
    BadName = PRBADNAM;
    /// An invalid argument.
    BadArgument = PRBADARG;
    /// A quota is used up.
    NoMore = PRNOMORE;
    /// The group that is to be the owner has no members.
    GroupEmpty = PRGROUPEMPTY;
    /// More members, groups or levels than permitted.
    TooMany = PRTOOMANY;
    /// The database is inconsistent.
    Damaged = PRDBBAD;
    /// The caller's token was revoked.
    Revoked = RXGKEXPIRED;
}

/// Why an operation on the protection database failed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtectionError {
    /// Refused by the rules of the service.
    #[error("the protection database refuses: {}", .0.code())]
    Refused(Refusal),
    /// The underlying store could not be read or written.
    #[error("the protection database's store failed: {0}")]
    Store(String),
    /// As [`LocationError::NoQuorum`].
    #[error("the servers that keep the database have no quorum")]
    NoQuorum,
}

impl ProtectionError {
    /// The abort code for a client.
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

/// Errors of the rows below: damage and failures only.
impl From<LocationError> for ProtectionError {
    fn from(error: LocationError) -> Self {
        match error {
            LocationError::Store(why) => ProtectionError::Store(why),
            LocationError::NoQuorum => ProtectionError::NoQuorum,
            LocationError::Refused(_) => Refusal::Damaged.into(),
        }
    }
}
