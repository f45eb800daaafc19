//! Users and their tokens.

use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::EnvExt;
use afs_rpc::sync::oneshot;
use afs_wire::ids::CellName;

use crate::api::{Requester, Token, TokenInfo, TokenOwner};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::CellIndex;
use crate::tokens::{Proof, TokenId, Who};
use crate::venus::{Venus, callbacks};
use crate::vnode::Vnode;

/// How long a request waits until the session of its process is found.
const SESSION_PATIENCE: Duration = Duration::from_secs(2);

impl Venus {
    /// The same cache manager, speaking for a process: with its session's token, else its user's, else as nobody in
    /// particular. Which token that is, is decided anew at each call to a server. Waits only for the session of a user who
    /// has one, at most two seconds: a process whose session cannot be found by then is in none.
    pub async fn on_behalf_of(&self, requester: Requester) -> Venus {
        let session = self.session_of(requester).await;
        self.speaking_for(Some(self.tokens.owner(requester.uid, session)))
    }

    async fn session_of(&self, requester: Requester) -> Option<u128> {
        let sessions = self.sessions.as_ref().filter(|_| self.tokens.has_session(requester.uid))?;
        let (tell, told) = oneshot::channel();
        sessions.find_session(requester, Box::new(move |session| tell.send(session)));
        self.env.timeout(SESSION_PATIENCE, told).await.ok()?.ok()?
    }

    /// Gives somebody a token for a cell, in place of the one he had. What he could not store for want of it is tried
    /// again at once. Returns when the kernel has forgotten what it may not tell him, or others, by itself any more.
    ///
    /// # Errors
    /// The cell is not known, or there are too many tokens (4096).
    pub async fn set_token(&self, owner: TokenOwner, token: Token) -> Result<()> {
        let cell = self.cell_named(token.cell.as_str())?;
        let is_same = |held: &TokenInfo| (held.owner, &held.label) == (owner, &token.label);
        let is_renewed = self.tokens().iter().any(|held| held.cell == token.cell && is_same(held));
        if !self.tokens.set(owner, cell, token) {
            return Err(VenusError::new(ErrorKind::Refused(TOO_MANY), "set token"));
        }
        self.token_changes.fetch_add(1, Ordering::SeqCst);
        self.retry_of(owner);
        if !is_renewed {
            self.tell_all();
        }
        self.people_changed().await;
        Ok(())
    }

    /// Takes away what somebody has for a cell, or for all. Says how many tokens that were. Returns as
    /// [`Venus::set_token`] does.
    pub async fn remove_token(&self, owner: TokenOwner, cell: Option<&CellName>) -> Result<usize> {
        let cell = cell.map(|cell| self.cell_named(cell.as_str())).transpose()?;
        let removed = self.tokens.remove(owner, cell);
        if removed > 0 {
            self.token_changes.fetch_add(1, Ordering::SeqCst);
            self.tell_all();
            self.people_changed().await;
        }
        Ok(removed)
    }

    /// All tokens, those that have expired too.
    pub fn tokens(&self) -> Vec<TokenInfo> {
        self.tokens.list()
    }

    /// A number that grows whenever somebody gets a token or loses one.
    pub fn token_changes(&self) -> u64 {
        self.token_changes.load(Ordering::SeqCst)
    }

    /// Whether processes of one user may have different rights.
    pub fn has_sessions(&self) -> bool {
        self.tokens.has_sessions()
    }

    /// How to call a cell now for the one we speak for.
    pub(super) fn proof(&self, cell: CellIndex) -> Proof {
        self.tokens.proof(self.who, cell, || self.env.wall())
    }

    pub(super) fn token_for(&self, cell: CellIndex) -> TokenId {
        self.proof(cell).id
    }

    pub(super) fn speaking_for(&self, who: Who) -> Venus {
        Venus { shared: self.shared.clone(), who }
    }

    /// For a task of its own.
    pub(super) fn again(&self) -> Venus {
        self.speaking_for(self.who)
    }

    /// Whether the one we speak for had a token for this cell until it expired.
    pub(super) fn has_expired_token(&self, cell: CellIndex) -> bool {
        self.tokens.is_expired(self.who, cell, self.env.wall())
    }

    /// A server does not take a token any more because its time is over. Whether that was news.
    pub(super) fn token_refused(&self, token: TokenId) -> bool {
        let Some(expired) = self.tokens.expire(token) else { return false };
        self.warn_of_expired(&expired);
        self.tell_private();
        true
    }

    /// Drops tokens whose time is over.
    pub(super) fn end_tokens(&self) {
        let expired = self.tokens.take_expired(self.env.wall());
        expired.iter().for_each(|token| self.warn_of_expired(token));
        if !expired.is_empty() {
            self.tell_private();
        }
    }

    fn warn_of_expired(&self, token: &TokenInfo) {
        let TokenInfo { owner, cell, label, .. } = token;
        tracing::warn!(
            "the token of {owner} for {cell} ({label}) has expired: log in again to go on as before"
        );
    }

    async fn people_changed(&self) {
        let known: Vec<TokenId> = self.tokens.ids();
        self.orders.retain(|token| known.contains(&token));
        self.tell_private();
        callbacks::settle(self).await;
    }

    /// Owners may be shown as other users of the machine from now on.
    fn tell_all(&self) {
        for vnode in self.vnodes.all() {
            self.told.fetch_add(1, Ordering::SeqCst);
            if let Some(node) = self.nodes.held(crate::key::Place::Object(vnode.key)) {
                self.sink.attributes(node);
            }
        }
        self.told.fetch_add(1, Ordering::SeqCst);
    }

    /// The kernel keeps what one user was told and gives it to the next one by itself only where everybody may know it,
    /// or where there is only one. Whenever that may have changed it must ask again about everything else.
    fn tell_private(&self) {
        for vnode in self.vnodes.all() {
            if !self.is_public(&vnode) {
                self.tell(vnode.key);
            }
        }
    }

    fn is_public(&self, vnode: &Vnode) -> bool {
        let Some(status) = vnode.state().status else { return false };
        if vnode.key.fid.is_directory() {
            let node = self.nodes.id(crate::key::Place::Object(vnode.key));
            return self.names_are_public(node);
        }
        self.attributes_are_public(vnode, &status)
    }
}

/// ENOSPC.
const TOO_MANY: i32 = 28;
