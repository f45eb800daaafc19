//! Errors of the location database, with their codes on the wire.

use std::fmt;

use afs_wire::error::AbortCode;

/// First code of the location service's error table (docs/protocol vldb.md "5. Error codes").
pub const VL_BASE: i32 = 363_520;

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $offset:literal, $text:literal;)*) => {
        /// Why the location service refuses a call (docs/protocol vldb.md "5. Error codes").
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum Refusal { $($(#[$doc])* $name,)* }

        impl Refusal {
            /// The abort code.
            pub const fn code(self) -> i32 {
                VL_BASE + match self { $(Refusal::$name => $offset,)* }
            }

            /// The protocol's name of the code, without its prefix.
            pub const fn name(self) -> &'static str {
                match self { $(Refusal::$name => $text,)* }
            }
        }
    };
}

refusals! {
    /// One of the volume ids belongs to another entry.
    IdExists = 0, "IDEXIST";
    /// The database could not be read or written.
    Io = 1, "IO";
    /// The name belongs to another entry.
    NameExists = 2, "NAMEEXIST";
    /// No such entry, server or address.
    NoEntry = 4, "NOENT";
    /// A name that is too long or has characters outside letters, digits, `.`, `-`, `_`.
    BadName = 7, "BADNAME";
    /// A list index that does not come from this database.
    BadIndex = 8, "BADINDEX";
    /// A volume type outside read-write, read-only, backup and "any".
    BadVolumeType = 9, "BADVOLTYPE";
    /// A count of sites outside the bounds, or a server that cannot be recorded.
    BadServer = 10, "BADSERVER";
    /// A partition number outside 0 to 255.
    BadPartition = 11, "BADPARTITION";
    /// The entry has the maximum number of sites.
    SitesFull = 12, "REPSFULL";
    /// The entry has no site at that server and partition.
    NoSuchSite = 13, "NOREPSERVER";
    /// The entry has a site at that server and partition already.
    DuplicateSite = 14, "DUPREPSERVER";
    /// The result does not fit into the reply.
    SizeExceeded = 17, "SIZEEXCEEDED";
    /// The replacement changes an unchangeable field.
    BadEntry = 18, "BADENTRY";
    /// More ids requested at once than permitted.
    BadIdBump = 19, "BADVOLIDBUMP";
    /// The entry is locked by another operation.
    EntryLocked = 21, "ENTRYLOCKED";
    /// A lock operation that is not exactly one of the known ones.
    BadOperation = 22, "BADVOLOPER";
    /// A release type with none of the known bits.
    BadRelease = 23, "BADRELLOCKTYPE";
    /// An earlier release of the volume did not finish.
    Rerelease = 24, "RERELEASE";
    /// A site flag outside 0 to 0x80.
    BadSiteFlag = 25, "BADSERVERFLAG";
    /// The caller may not change the database.
    Permission = 26, "PERM";
    /// A server index outside 1 to 254, or a registration without addresses.
    IndexRange = 29, "INDEXERANGE";
    /// The addresses belong to several other servers.
    MultipleAddresses = 30, "MULTIPADDR";
    /// A selection that is not exactly one of the known ones.
    BadMask = 31, "BADMASK";
    /// The database is inconsistent.
    Damaged = 32, "DBBAD";
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VL_{} ({})", self.name(), self.code())
    }
}

/// Why an operation on the location database failed. Nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocationError {
    /// Refused by the rules of the service.
    #[error("the location database refuses: {0}")]
    Refused(Refusal),
    /// The underlying store could not be read or written.
    #[error("the location database's store failed: {0}")]
    Store(String),
    /// No majority of the servers of the shared store can be reached. If it was lost during a change, the
    /// change may have happened.
    #[error("the servers that keep the database have no quorum")]
    NoQuorum,
}

impl LocationError {
    /// The abort code for a client.
    pub fn code(&self) -> i32 {
        match self {
            LocationError::Refused(refusal) => refusal.code(),
            LocationError::Store(_) => Refusal::Io.code(),
            LocationError::NoQuorum => AbortCode::UNOQUORUM.0,
        }
    }
}

impl From<Refusal> for LocationError {
    fn from(refusal: Refusal) -> Self {
        LocationError::Refused(refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_match_the_table() {
        let table = [
            (Refusal::IdExists, 363_520),
            (Refusal::NameExists, 363_522),
            (Refusal::NoEntry, 363_524),
            (Refusal::BadName, 363_527),
            (Refusal::BadVolumeType, 363_529),
            (Refusal::EntryLocked, 363_541),
            (Refusal::Rerelease, 363_544),
            (Refusal::Permission, 363_546),
            (Refusal::MultipleAddresses, 363_550),
            (Refusal::BadMask, 363_551),
        ];
        for (refusal, code) in table {
            assert_eq!(refusal.code(), code, "{refusal}");
        }
    }
}
