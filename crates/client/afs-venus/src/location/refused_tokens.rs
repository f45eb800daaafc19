//! Tokens that a server refuses, expired by its clock or of a key that it does not have: not shown to it for some seconds, and then again.
//!
//! Whether a token has expired for good, this machine's clock and the end of the token decide ([`crate::identity`]).

use std::collections::BTreeMap;
use std::time::Duration;

use afs_rpc::Instant;
use parking_lot::Mutex;

use crate::identity::TokenId;

/// How long the server's word is believed: so soon after its clock or its keys are right a token is good again.
const BELIEVED: Duration = Duration::from_secs(10);

/// The tokens that one server has refused, and until when that is believed. Bounded by the number of tokens.
#[derive(Default)]
pub(crate) struct RefusedTokens(Mutex<BTreeMap<TokenId, Instant>>);

impl RefusedTokens {
    /// The server has refused a token. Returns true if it has not done so lately.
    pub fn note(&self, token: TokenId, now: Instant) -> bool {
        let mut refused = self.0.lock();
        refused.retain(|_, until| now < *until + BELIEVED);
        refused.insert(token, now + BELIEVED).is_none()
    }

    /// True if the server has refused the token lately.
    pub fn has(&self, token: TokenId, now: Instant) -> bool {
        self.0.lock().get(&token).is_some_and(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_token_is_tried_again_after_some_seconds() {
        let (refused, token) = (RefusedTokens::default(), TokenId(3));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(!refused.has(token, at(100)) && refused.note(token, at(100)));
        assert!(refused.has(token, at(109)) && !refused.has(TokenId(4), at(109)));
        assert!(!refused.has(token, at(110)) && !refused.note(token, at(112)));
        assert!(refused.note(TokenId(4), at(200)));
        assert_eq!(refused.0.lock().len(), 1, "those of long ago are gone");
        assert!(refused.note(token, at(201)), "it was good in between, or not used");
    }
}
