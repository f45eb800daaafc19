//! How an attempt ended, and what that says about the address that was called.

use afs_wire::error::AbortCode;

/// How one attempt ended, other than by success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The address did not answer at all.
    NoReply,
    /// It did not answer this call, but others that began later: it was restarted meanwhile, and knows nothing of it.
    Lost,
    /// It answered packets, but the call took too long.
    Slow,
    /// The server aborted the call.
    Abort(AbortCode),
    /// This side gave the call up, with this code: that says nothing about the server.
    GivenUp(AbortCode),
    /// The answer cannot be read.
    Malformed,
    /// Our own transport is closed.
    Closed,
}

/// What an attempt says about the address that was called.
pub fn marks_down(outcome: Outcome) -> bool {
    match outcome {
        Outcome::NoReply => true,
        Outcome::Abort(code) => is_network(code),
        // What this side sends says nothing about the other one, whatever the code.
        Outcome::GivenUp(_) => false,
        Outcome::Lost | Outcome::Slow | Outcome::Malformed | Outcome::Closed => false,
    }
}

/// Negative codes come from Rx or from a server in trouble, except the one that says "no such call", and the ones
/// about bytes that could not be decoded (docs/protocol/fileserver.md "9.1 Volume-package ("V") codes").
pub(super) fn is_network(code: AbortCode) -> bool {
    code.0 < 0 && !(-457..=-450).contains(&code.0) && code != AbortCode::VRESTARTING
}
