//! Users and their tokens.

use afs_rpc::boxed;
use afs_wire::ids::CellName;

use crate::api::{Requester, Token, TokenInfo, TokenOwner};
use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::{Credentials, TokenId};
use crate::key::CellIndex;
use crate::location::Volume;
use crate::venus::Venus;

impl Venus {
    /// The same cache manager for a process: with the token of its session, else of its user, else anonymous. The token
    /// is chosen anew at each call to a server. Waits only for the session of a user who has one, at most two seconds;
    /// a process whose session cannot be found by then is in none.
    #[boxed]
    pub async fn on_behalf_of(&self, requester: Requester) -> Venus {
        let me = self.as_user(Some(self.identity.owner_of(requester).await));
        me.for_process(requester.pid)
    }

    /// A cache manager that acts for the owner of tokens, for a request that tells the session itself.
    pub fn acting_for(&self, owner: TokenOwner) -> Venus {
        self.as_user(Some(self.identity.known_owner(owner)))
    }

    /// Sets a token for a cell, in place of the owner's previous one, and retries the owner's stores that failed for
    /// lack of it. Returns after the kernel has dropped what it must not show to this owner, or to others, any more.
    ///
    /// # Errors
    /// The cell is unknown, or there are too many tokens (4096).
    #[boxed]
    pub async fn set_token(&self, owner: TokenOwner, token: Token) -> Result<()> {
        let cell = self.cell_named(token.cell.as_str()).await?;
        let is_renewed = self.identity.set_token(owner, cell, token)?;
        self.retry_stores_of(owner);
        if !is_renewed {
            self.promises.invalidate_owners();
        }
        self.tokens_changed().await;
        self.pins.doubt_lacking_of(owner);
        Ok(())
    }

    /// Removes the owner's token for a cell, or for all cells. Returns their number, after the kernel has dropped what
    /// it must, as [`Venus::set_token`] does.
    #[boxed]
    pub async fn remove_token(&self, owner: TokenOwner, cell: Option<&CellName>) -> Result<usize> {
        let unknown = VenusError::new(ErrorKind::NoVolume, "cell");
        let index = |cell: &CellName| self.location.cell_named(cell.as_str()).ok_or(unknown);
        let cell = cell.map(index).transpose()?;
        let removed = self.identity.remove_token(owner, cell);
        if removed > 0 {
            self.promises.invalidate_owners();
            self.tokens_changed().await;
        }
        Ok(removed)
    }

    /// All tokens, including expired ones.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.identity.tokens()
    }

    /// A number that grows with every token that is set or removed.
    pub fn token_changes(&self) -> u64 {
        self.identity.changes()
    }

    /// True if processes of one user may have different rights.
    pub fn has_sessions(&self) -> bool {
        self.identity.has_sessions()
    }

    /// Credentials of the current user for calls to a cell.
    pub(super) fn credentials(&self, cell: CellIndex) -> Credentials {
        self.identity.credentials(self.context.user, cell)
    }

    pub(super) fn token_for(&self, cell: CellIndex) -> TokenId {
        self.credentials(cell).id
    }

    /// True if the current user had a token for this cell and it has expired.
    pub(super) fn has_expired_token(&self, cell: CellIndex) -> bool {
        self.identity.has_expired(self.context.user, cell)
    }

    /// True if the current user had a token for this cell and is anonymous now: to log in again helps.
    pub(super) fn has_lost_token(&self, cell: CellIndex) -> bool {
        self.identity.has_lost(self.context.user, cell)
    }

    /// True if a server of a volume refuses the current user's token.
    pub(super) fn is_token_refused(&self, volume: &Volume) -> bool {
        let (now, token) = (self.now(), self.token_for(volume.cell));
        volume.sites(now).iter().any(|server| server.refused_tokens.has(token, now))
    }

    /// Removes tokens past their expiry time.
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
