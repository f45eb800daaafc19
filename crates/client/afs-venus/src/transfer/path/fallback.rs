//! Reasons for which bytes go by calls although their server has a data path.

use afs_datapath::session::{Error, Failure, Lost};
use afs_rpc::CallError;

/// How a transfer ended that did not succeed.
pub(crate) enum Ended {
    /// It is to be made by calls, of which nothing is counted.
    NoPath,
    /// It is to be made by calls.
    Fallback(Fallback),
    /// Not for the path's sake.
    Failed(CallError),
}

/// Why a fetch or a store is made by calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fallback {
    /// The connection is being opened.
    Connecting,
    /// The path has failed a short time ago.
    Paused,
    /// The connection has as many transfers as it takes.
    Full,
    /// The file server gives no capability, or has not given it in time.
    NoCapability,
    /// The file server gives no layout in time, or one that does not say where the bytes are.
    NoLayout,
    /// The file server gives no room at a drive, or one that cannot be used.
    NoRoom,
    /// The drive refuses the capability.
    Refused,
    /// The drive has another version of the file.
    OtherVersion,
    /// The drive has other bytes than those of the checksum.
    Damaged,
    /// The drive cannot serve this request, and says so.
    Declined,
    /// The drive cannot have these bytes now, and says so. That is nothing against what else it has.
    Unavailable,
    /// No connection could be opened.
    Unreachable,
    /// The drive has another key than the file server told.
    WrongKey,
    /// The file server named an object store that is not to be used from here.
    Forbidden,
    /// The connection ended.
    Broken,
    /// Nothing moved for too long.
    Stalled,
    /// The drive broke the protocol.
    Protocol,
    /// The file server does not accept the ticket, or what was staged in a room.
    Ticket,
}

impl Fallback {
    /// What an error of a session means.
    pub fn of(error: &Error) -> Fallback {
        match error {
            Error::Failed(Failure::Refused(_)) => Fallback::Refused,
            Error::Failed(Failure::OtherVersion) => Fallback::OtherVersion,
            Error::Failed(Failure::Damaged) => Fallback::Damaged,
            Error::Failed(Failure::Unavailable) => Fallback::Unavailable,
            Error::Failed(_) => Fallback::Declined,
            Error::Handles => Fallback::Full,
            Error::Stalled | Error::Lost(Lost::Silent | Lost::Stuck) => Fallback::Stalled,
            Error::Length | Error::Lost(Lost::Frame(_) | Lost::Violation(_)) => Fallback::Protocol,
            Error::Lost(_) => Fallback::Broken,
        }
    }

    /// As the counters name it.
    pub fn name(self) -> &'static str {
        match self {
            Fallback::Connecting => "connecting",
            Fallback::Paused => "paused",
            Fallback::Full => "full",
            Fallback::NoCapability => "no_capability",
            Fallback::NoLayout => "no_layout",
            Fallback::NoRoom => "no_room",
            Fallback::Refused => "refused",
            Fallback::OtherVersion => "other_version",
            Fallback::Damaged => "damaged",
            Fallback::Declined => "declined",
            Fallback::Unavailable => "unavailable",
            Fallback::Unreachable => "unreachable",
            Fallback::WrongKey => "wrong_key",
            Fallback::Forbidden => "forbidden",
            Fallback::Broken => "broken",
            Fallback::Stalled => "stalled",
            Fallback::Protocol => "protocol",
            Fallback::Ticket => "ticket",
        }
    }

    /// Whether it says only that this request is not served. Many of them in a row say more.
    pub fn is_of_request(self) -> bool {
        matches!(self, Fallback::Declined | Fallback::Refused | Fallback::Damaged)
    }

    /// Whether it says that a layout does not hold, so that another one is asked for. One that is being connected, or paused, may have
    /// all that the layout says.
    pub fn is_of_layout(self) -> bool {
        self.is_of_request() || matches!(self, Fallback::Protocol | Fallback::Unavailable)
    }

    /// Whether it says that the path does not work, so that it is left alone for a time.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Fallback::Unreachable
                | Fallback::WrongKey
                | Fallback::Forbidden
                | Fallback::Broken
                | Fallback::Stalled
                | Fallback::Protocol
                | Fallback::Ticket
        )
    }
}
