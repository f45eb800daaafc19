//! Cached rights of users on one object.

use afs_rpc::Instant;
use afs_wire::ids::Rights;

use crate::identity::TokenId;
use crate::promise::ServerReset;

/// Users per object; the one whose rights were requested longest ago is removed first.
const TOKENS_MAX: usize = 32;

/// Rights as servers reported them, by token. Valid only while the object is promised, since a change of an access list
/// breaks the promise on its directory.
#[derive(Default)]
pub(crate) struct RightsTable(Vec<TokenRights>);

/// The rights of the user of one token.
#[derive(Clone, Debug)]
pub(crate) struct TokenRights {
    pub token: TokenId,
    pub rights: Rights,
    /// Start of the call that returned them.
    pub asked: Instant,
    /// Number of the last break before that call.
    pub serial: u64,
    /// The server that notifies this client of a change of what they rest on; `None`: no server does.
    pub promiser: Option<ServerReset>,
}

impl RightsTable {
    /// Rights of one token.
    pub fn get(&self, token: TokenId) -> Option<TokenRights> {
        self.0.iter().find(|known| known.token == token).cloned()
    }

    /// Records rights, unless later ones are known. Returns true if the user loses a right.
    pub fn note(&mut self, new: TokenRights) -> bool {
        if let Some(known) = self.0.iter_mut().find(|known| known.token == new.token) {
            if known.asked > new.asked {
                return false;
            }
            let loses = !new.rights.contains(known.rights);
            *known = new;
            return loses;
        }
        if self.0.len() >= TOKENS_MAX
            && let Some(oldest) = (0..self.0.len()).min_by_key(|n| self.0.get(*n).map(|known| known.asked))
        {
            self.0.swap_remove(oldest);
        }
        self.0.push(new);
        false
    }

    /// Removes the rights of one token.
    pub fn forget(&mut self, token: TokenId) {
        self.0.retain(|known| known.token != token);
    }

    /// Removes all rights, after the promise has ended.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn known(token: u64, rights: Rights, seconds: u64) -> TokenRights {
        let asked = Instant::ZERO + Duration::from_secs(seconds);
        TokenRights { token: TokenId(token), rights, asked, serial: 0, promiser: None }
    }

    #[test]
    fn the_latest_reply_is_kept_and_a_loss_is_reported() {
        let mut table = RightsTable::default();
        assert!(!table.note(known(1, Rights::ALL, 5)));
        assert!(!table.note(known(2, Rights::READ, 5)));
        assert!(!table.note(known(1, Rights::NONE, 4)));
        assert_eq!(table.get(TokenId(1)).unwrap().rights, Rights::ALL);
        assert!(table.note(known(1, Rights::READ, 6)));
        assert_eq!(table.get(TokenId(1)).unwrap().rights, Rights::READ);
        assert!(table.get(TokenId(3)).is_none());
    }

    #[test]
    fn rights_are_bounded_and_the_oldest_are_evicted() {
        let mut table = RightsTable::default();
        for n in 0..100 {
            table.note(known(n, Rights::READ, n));
        }
        assert_eq!(table.0.len(), TOKENS_MAX);
        assert!(table.get(TokenId(99)).is_some() && table.get(TokenId(67)).is_none());
    }
}
