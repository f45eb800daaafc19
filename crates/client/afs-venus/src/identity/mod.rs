//! Identity: the users of this machine, their tokens, and the order in which their rights were requested.
//!
//! Uses neither servers nor objects nor the kernel. Where a change here requires that other parts drop what they know,
//! the method's documentation says so and the caller does it.

mod rights;
mod rights_order;
mod sessions;
mod table;

pub(crate) use rights::{RightsTable, TokenRights};
pub(crate) use rights_order::RightsOrder;
pub(crate) use table::{Credentials, TokenId, User};

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use afs_rpc::EnvRef;
use afs_wire::error::AbortCode;

use crate::api::{Requester, SessionLookup, Token, TokenInfo, TokenOwner};
use crate::config::OwnIdentity;
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::CellIndex;
use sessions::{NotFound, Sessions};
use table::TokenTable;

/// Stands for the session of a process that cannot be examined. No session has this number, of 128 random bits.
const UNKNOWN_SESSION: u128 = 0;

/// ENOSPC.
const TOO_MANY: i32 = 28;

/// The users of this machine and their tokens.
pub(crate) struct Identity {
    env: EnvRef,
    tokens: TokenTable,
    sessions: Sessions,
    /// Number of times that a token was set or removed.
    changes: AtomicU64,
    rights_order: Arc<RightsOrder>,
}

impl Identity {
    /// `own` is the user who needs no token; `sessions` finds the session of a process, if there are sessions.
    pub fn new(env: EnvRef, own: Option<OwnIdentity>, sessions: Option<Arc<dyn SessionLookup>>) -> Self {
        Identity {
            tokens: TokenTable::new(own.map(|own| (own.uid, own.security))),
            sessions: Sessions::new(env.clone(), sessions),
            env,
            changes: AtomicU64::new(0),
            rights_order: Arc::default(),
        }
    }

    /// The owner of the tokens that a process uses: its session if that has a token, else its user. Waits only for the
    /// session of a user who has one, at most two seconds. A process whose session is not known is in none; if it may be
    /// one with fewer rights than the user, the owner is one without a token.
    pub async fn owner_of(&self, requester: Requester) -> TokenOwner {
        let uid = requester.uid;
        if !self.tokens.has_session(uid) {
            return self.tokens.owner(uid, None);
        }
        match self.sessions.find(requester).await {
            Ok(session) => self.tokens.owner(uid, session),
            Err(NotFound) if self.tokens.has_narrowed_session(uid) => {
                TokenOwner::Session { id: UNKNOWN_SESSION, uid }
            }
            Err(NotFound) => self.tokens.owner(uid, None),
        }
    }

    /// The owner of the tokens that a program uses which belongs to this owner: a session without any token is not known.
    pub fn known_owner(&self, owner: TokenOwner) -> TokenOwner {
        match owner {
            TokenOwner::Session { id, uid } => self.tokens.owner(uid, Some(id)),
            TokenOwner::Uid(uid) => self.tokens.owner(uid, None),
        }
    }

    /// Credentials for calls to a cell now.
    pub fn credentials(&self, user: User, cell: CellIndex) -> Credentials {
        self.tokens.credentials(user, cell, || self.env.wall())
    }

    /// True if a user had a token for a cell and is anonymous now, because it expired or was removed by a logout.
    pub fn has_lost(&self, user: User, cell: CellIndex) -> bool {
        self.tokens.is_lost(user, cell, self.env.wall())
    }

    /// True if an owner had a token for this cell and it has expired.
    pub fn has_expired(&self, user: User, cell: CellIndex) -> bool {
        self.tokens.is_expired(user, cell, self.env.wall())
    }

    /// Sets a token, in place of the owner's previous one. Returns true if it renews one of the same owner and label.
    ///
    /// # Errors
    /// Too many tokens (4096).
    pub fn set_token(&self, owner: TokenOwner, cell: CellIndex, token: Token) -> Result<bool> {
        let is_same = |held: &TokenInfo| (held.owner, &held.label) == (owner, &token.label);
        let is_renewed = self.tokens.list().iter().any(|held| held.cell == token.cell && is_same(held));
        if !self.tokens.set(owner, cell, token) {
            return Err(VenusError::new(ErrorKind::Refused(TOO_MANY), "set token"));
        }
        self.changed();
        Ok(is_renewed)
    }

    /// Removes the owner's token for a cell, or for all cells. Returns the number of tokens removed.
    pub fn remove_token(&self, owner: TokenOwner, cell: Option<CellIndex>) -> usize {
        let removed = self.tokens.remove(owner, cell);
        if removed > 0 {
            self.changed();
        }
        removed
    }

    /// Logs that a server refuses a token with this code.
    pub fn warn_of_refused(&self, id: TokenId, server: SocketAddr, code: AbortCode) {
        let Some(TokenInfo { owner, cell, label, expires, .. }) = self.tokens.info(id) else { return };
        if !code.says_expired() {
            tracing::warn!(
                %server,
                %code,
                "the server does not accept the token of {owner} for {cell} ({label}), whose calls are made without it: the login was to \
                 another cell of this name, or the cell's key has changed, and `andrew login` gets a new token; or the token is without \
                 some groups, which this server does not know"
            );
            return;
        }
        let left = expires.map(|end| end.secs.saturating_sub(self.env.wall().secs));
        tracing::warn!(
            %server,
            seconds_left = left,
            "the server says that the token of {owner} for {cell} ({label}) has expired; by this machine's clock it has not: \
             `andrew server list` shows whose clock is wrong"
        );
    }

    /// Removes tokens past their expiry time. Returns true if there were any: then replies given to their owners must not be
    /// relied on any more.
    pub fn end_expired(&self) -> bool {
        let expired = self.tokens.take_expired(self.env.wall());
        expired.iter().for_each(warn_of_expired);
        !expired.is_empty()
    }

    /// All tokens, including expired ones.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.tokens.list()
    }

    /// A number that grows with every token that is set or removed.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// True if processes of one user may have different rights.
    pub fn has_sessions(&self) -> bool {
        self.tokens.has_sessions()
    }

    /// The order in which rights were requested.
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
