//! Identity: who the users of this machine are to the cells, and what was asked for them.
//!
//! Knows nothing of servers, objects or the kernel. Where something here means that others must forget what they know, the
//! method says so and the caller does it.

mod rights;
mod rights_order;
mod sessions;
mod table;

pub(crate) use rights::{RightsTable, TokenRights};
pub(crate) use rights_order::RightsOrder;
pub(crate) use table::{Credentials, TokenId, User};

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_rpc::EnvRef;

use crate::api::{Requester, SessionLookup, Token, TokenInfo, TokenOwner};
use crate::config::OwnIdentity;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::CellIndex;
use sessions::Sessions;
use table::TokenTable;

/// ENOSPC.
const TOO_MANY: i32 = 28;

/// The users of this machine and their tokens.
pub(crate) struct Identity {
    env: EnvRef,
    tokens: TokenTable,
    sessions: Sessions,
    /// How often a token was set or removed.
    changes: AtomicU64,
    rights_order: Arc<RightsOrder>,
}

impl Identity {
    /// `own` is the user who can call without a token; `sessions` says in which session a process is, if there are any.
    pub fn new(env: EnvRef, own: Option<OwnIdentity>, sessions: Option<Arc<dyn SessionLookup>>) -> Self {
        Identity {
            tokens: TokenTable::new(own.map(|own| (own.uid, own.security))),
            sessions: Sessions::new(env.clone(), sessions),
            env,
            changes: AtomicU64::new(0),
            rights_order: Arc::default(),
        }
    }

    /// For whom a process asks: its session if it has a token, else its user. Waits only for the session of a user who has one,
    /// at most two seconds.
    pub async fn owner_of(&self, requester: Requester) -> TokenOwner {
        let session = match self.tokens.has_session(requester.uid) {
            true => self.sessions.find(requester).await,
            false => None,
        };
        self.tokens.owner(requester.uid, session)
    }

    /// How to call a cell now for an owner of tokens.
    pub fn credentials(&self, user: User, cell: CellIndex) -> Credentials {
        self.tokens.credentials(user, cell, || self.env.wall())
    }

    /// Whether an owner had a token for this cell until it expired.
    pub fn has_expired(&self, user: User, cell: CellIndex) -> bool {
        self.tokens.is_expired(user, cell, self.env.wall())
    }

    /// Gives an owner a token, in place of the one that was there. Says whether it renews one of the same owner and label.
    ///
    /// # Errors
    /// There are too many tokens (4096).
    pub fn set_token(&self, owner: TokenOwner, cell: CellIndex, token: Token) -> Result<bool> {
        let is_same = |held: &TokenInfo| (held.owner, &held.label) == (owner, &token.label);
        let is_renewed = self.tokens.list().iter().any(|held| held.cell == token.cell && is_same(held));
        if !self.tokens.set(owner, cell, token) {
            return Err(VenusError::new(ErrorKind::Refused(TOO_MANY), "set token"));
        }
        self.changed();
        Ok(is_renewed)
    }

    /// Takes away the owner's token for a cell, or for all. Says how many tokens that were.
    pub fn remove_token(&self, owner: TokenOwner, cell: Option<CellIndex>) -> usize {
        let removed = self.tokens.remove(owner, cell);
        if removed > 0 {
            self.changed();
        }
        removed
    }

    /// A server says that this token has expired. Whether that was news: then no answer may be relied on that was given to
    /// its owner.
    pub fn mark_expired(&self, id: TokenId) -> bool {
        let expired = self.tokens.expire(id);
        expired.iter().for_each(warn_of_expired);
        expired.is_some()
    }

    /// Ends tokens whose time is over. Whether there were any; see [`Identity::refused`].
    pub fn end_expired(&self) -> bool {
        let expired = self.tokens.take_expired(self.env.wall());
        expired.iter().for_each(warn_of_expired);
        !expired.is_empty()
    }

    /// All tokens, those that have expired too.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.tokens.list()
    }

    /// A number that grows with every token that is given or taken away.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Whether processes of one user may have different rights.
    pub fn has_sessions(&self) -> bool {
        self.tokens.has_sessions()
    }

    /// In which order rights were asked for.
    pub fn rights_order(&self) -> &Arc<RightsOrder> {
        &self.rights_order
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        let known = self.tokens.ids();
        self.rights_order.retain(|token| known.contains(&token));
    }
}

fn warn_of_expired(token: &TokenInfo) {
    let TokenInfo { owner, cell, label, .. } = token;
    tracing::warn!("the token of {owner} for {cell} ({label}) has expired: log in again to go on as before");
}

#[cfg(test)]
mod tests;
