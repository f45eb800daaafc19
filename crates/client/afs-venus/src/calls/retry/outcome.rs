//! Outcome of an attempt, and what it says about the address.

use afs_wire::error::AbortCode;

/// How an attempt ended, other than by success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// No reply from the address.
    NoReply,
    /// The address replied to later calls but not to this one: the server was restarted and does not know it.
    Lost,
    /// The address acknowledged packets, but the call took too long.
    Slow,
    /// The server aborted the call.
    Abort(AbortCode),
    /// This side abandoned the call with this code, which says nothing about the server.
    GivenUp(AbortCode),
    /// The reply could not be decoded.
    Malformed,
    /// The local endpoint is closed.
    Closed,
}

/// True if an outcome shows that the address is unreachable.
pub fn marks_down(outcome: Outcome) -> bool {
    match outcome {
        Outcome::NoReply => true,
        Outcome::Abort(code) => is_network(code),
        // Codes sent by this side say nothing about the peer.
        Outcome::GivenUp(_) => false,
        Outcome::Lost | Outcome::Slow | Outcome::Malformed | Outcome::Closed => false,
    }
}

/// True for negative codes, which come from Rx or from a failing server, except "no such call" and the codes of
/// undecodable bytes (docs/protocol/fileserver.md "9.1 Volume-package ("V") codes").
pub(super) fn is_network(code: AbortCode) -> bool {
    code.0 < 0 && !(-457..=-450).contains(&code.0) && code != AbortCode::VRESTARTING
}
