//! Users and their tokens.

use afs_wire::ids::CellName;

use crate::api::{Requester, Token, TokenInfo, TokenOwner};
use crate::error::Result;
use crate::identity::{Credentials, TokenId};
use crate::key::CellIndex;
use crate::venus::Venus;

impl Venus {
    /// The same cache manager, speaking for a process: with its session's token, else its user's, else as nobody in
    /// particular. Which token that is, is decided anew at each call to a server. Waits only for the session of a user who
    /// has one, at most two seconds: a process whose session cannot be found by then is in none.
    pub async fn on_behalf_of(&self, requester: Requester) -> Venus {
        let me = self.as_user(Some(self.identity.owner_of(requester).await));
        me.for_process(requester.pid)
    }

    /// Gives somebody a token for a cell, in place of the one he had. What he could not store for want of it is tried
    /// again at once. Returns when the kernel has forgotten what it may not tell him, or others, by itself any more.
    ///
    /// # Errors
    /// The cell is not known, or there are too many tokens (4096).
    pub async fn set_token(&self, owner: TokenOwner, token: Token) -> Result<()> {
        let cell = self.cell_named(token.cell.as_str())?;
        let is_renewed = self.identity.set_token(owner, cell, token)?;
        self.retry_stores_of(owner);
        if !is_renewed {
            self.promises.invalidate_owners();
        }
        self.tokens_changed().await;
        Ok(())
    }

    /// Takes away what somebody has for a cell, or for all. Says how many tokens that were. Returns as
    /// [`Venus::set_token`] does.
    pub async fn remove_token(&self, owner: TokenOwner, cell: Option<&CellName>) -> Result<usize> {
        let cell = cell.map(|cell| self.cell_named(cell.as_str())).transpose()?;
        let removed = self.identity.remove_token(owner, cell);
        if removed > 0 {
            self.promises.invalidate_owners();
            self.tokens_changed().await;
        }
        Ok(removed)
    }

    /// All tokens, those that have expired too.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.identity.tokens()
    }

    /// A number that grows whenever somebody gets a token or loses one.
    pub fn token_changes(&self) -> u64 {
        self.identity.changes()
    }

    /// Whether processes of one user may have different rights.
    pub fn has_sessions(&self) -> bool {
        self.identity.has_sessions()
    }

    /// How to call a cell now for the one we speak for.
    pub(super) fn credentials(&self, cell: CellIndex) -> Credentials {
        self.identity.credentials(self.context.user, cell)
    }

    pub(super) fn token_for(&self, cell: CellIndex) -> TokenId {
        self.credentials(cell).id
    }

    /// Whether the one we speak for had a token for this cell until it expired.
    pub(super) fn has_expired_token(&self, cell: CellIndex) -> bool {
        self.identity.has_expired(self.context.user, cell)
    }

    /// Drops tokens whose time is over.
    pub(super) fn end_tokens(&self) {
        if self.identity.end_expired() {
            self.promises.invalidate_private();
        }
    }

    async fn tokens_changed(&self) {
        self.promises.invalidate_private();
        self.kernel.settled().await;
    }
}
