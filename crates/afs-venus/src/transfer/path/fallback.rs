//! Reasons for which bytes go by calls although their server has a data path.

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
    /// The drive refuses the capability.
    Refused,
    /// The drive has another version of the file.
    OtherVersion,
    /// The drive cannot serve this request, and says so.
    Declined,
    /// No connection could be opened.
    Unreachable,
    /// The drive has another key than the file server told.
    WrongKey,
    /// The connection ended.
    Broken,
    /// Nothing moved for too long.
    Stalled,
    /// The drive broke the protocol.
    Protocol,
    /// The file server does not accept the ticket.
    Ticket,
}

impl Fallback {
    /// As the counters name it.
    pub fn name(self) -> &'static str {
        match self {
            Fallback::Connecting => "connecting",
            Fallback::Paused => "paused",
            Fallback::Full => "full",
            Fallback::NoCapability => "no_capability",
            Fallback::Refused => "refused",
            Fallback::OtherVersion => "other_version",
            Fallback::Declined => "declined",
            Fallback::Unreachable => "unreachable",
            Fallback::WrongKey => "wrong_key",
            Fallback::Broken => "broken",
            Fallback::Stalled => "stalled",
            Fallback::Protocol => "protocol",
            Fallback::Ticket => "ticket",
        }
    }

    /// Whether it says that the path does not work, so that it is left alone for a time.
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Fallback::Unreachable
                | Fallback::WrongKey
                | Fallback::Broken
                | Fallback::Stalled
                | Fallback::Protocol
                | Fallback::Ticket
        )
    }
}
