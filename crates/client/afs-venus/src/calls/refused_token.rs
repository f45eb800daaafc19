//! Tokens that a server refuses: a proof is repeated once, then the call is made without the token.
//!
//! A server refuses a token that has expired by its clock, and one whose key it does not have: the login was to another cell of that
//! name, or the cell's key has changed. It also refuses a response to a challenge that it sent before it was restarted.

use afs_rpc::CallError;
use afs_wire::error::AbortCode;

use crate::calls::{Calls, Target};
use crate::identity::TokenId;

impl Calls {
    /// The code with which the server refused the token of a call, or the proof of its key.
    pub(super) fn refusal(target: &Target, error: &CallError) -> Option<AbortCode> {
        let code = error.abort_code().filter(|code| code.is_of_security())?;
        (target.token != TokenId::NONE).then_some(code)
    }

    /// The next call with this token begins on a new connection, with a new proof.
    pub(super) fn prove_again(&self, target: &Target) {
        target.address.forget_connection(target.token);
    }

    /// Calls to this server are made without the token for some seconds. What this client knows by the token stays valid, and other
    /// servers are shown it: the server's clock may be wrong, or its keys old.
    pub(super) fn do_without(&self, target: &Target, code: AbortCode) {
        if target.server.refused_tokens.note(target.token, self.now()) {
            self.parts.identity.warn_of_refused(target.token, target.address.peer, code);
            if code.says_expired() {
                // Its time, for those who look whose clock is wrong.
                self.probe_soon(target.clone());
            }
        }
        self.prove_again(target);
    }
}
