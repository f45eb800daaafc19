//! Rights of a user on an object, as servers have reported them last.

use afs_rpc::Instant;
use afs_wire::ids::Rights;

use crate::api::{ExplainedRights, TokenInfo};
use crate::identity::TokenId;
use crate::key::CellIndex;
use crate::venus::Venus;
use crate::vnode::Vnode;

/// What was reported.
#[derive(Clone, Copy)]
pub(super) struct Reported {
    /// The rights of everybody.
    everybody: Option<Rights>,
    /// Those of the user's token, and when they were asked for; or those that the user had when the object was promised last.
    own: Option<(Rights, Option<Instant>)>,
    token: TokenId,
}

impl Reported {
    /// All that is known; `None` if nothing is.
    pub fn known(&self) -> Option<Rights> {
        let own = self.own.map(|(rights, _)| rights);
        match (self.everybody, own) {
            (None, None) => None,
            (everybody, own) => Some(everybody.unwrap_or(Rights::NONE) | own.unwrap_or(Rights::NONE)),
        }
    }

    /// Whether what is known is all of the user's rights.
    pub fn is_for_user(&self) -> bool {
        self.own.is_some() || (self.token == TokenId::NONE && self.everybody.is_some())
    }
}

impl Venus {
    /// The rights on an object: those in its directory, and whether the user owns it.
    pub(super) fn reported_rights(&self, vnode: &Vnode) -> Reported {
        let token = self.token_for(vnode.key.cell);
        let here = self.reported(vnode, token);
        if vnode.key.fid.is_directory() {
            return here;
        }
        let parent =
            vnode.state().status.map(|status| vnode.key.sibling(status.parent, status.parent_unique));
        let Some(dir) = parent.and_then(|parent| self.vnodes.peek(parent)) else { return here };
        let listed = |rights: Rights| rights & !Rights::ADMINISTER;
        let there = self.reported(&dir, token);
        let owner = here.own.map_or(Rights::NONE, |(rights, _)| rights & Rights::ADMINISTER);
        let own = there.own.map(|(rights, asked)| (listed(rights) | owner, asked)).or(here.own);
        Reported { everybody: there.everybody.map(listed).or(here.everybody), own, token }
    }

    pub(super) fn rights_explained(&self, cell: CellIndex, reported: Reported) -> ExplainedRights {
        let token = self.own_token(cell);
        let source = match &token {
            _ if self.has_expired_token(cell) => "expired token",
            Some(_) => "token",
            None if reported.token != TokenId::NONE => "mount",
            None => "anonymous",
        };
        let now = self.env.wall();
        let left = token.as_ref().and_then(|token| token.expires);
        let asked = reported.own.and_then(|(_, asked)| asked);
        ExplainedRights {
            rights: reported.known().filter(|_| reported.is_for_user()).map(|rights| rights.to_string()),
            everybody: reported.everybody.map(|rights| rights.to_string()),
            seconds_ago: asked.map(|asked| self.now().saturating_since(asked).as_secs()),
            source: source.into(),
            user: token.map(|token| token.label),
            token_seconds_left: left.map(|end| end.secs.saturating_sub(now.secs)),
        }
    }

    fn reported(&self, vnode: &Vnode, token: TokenId) -> Reported {
        let state = vnode.state();
        let own = state.rights.get(token).map(|known| (known.rights, Some(known.asked)));
        let before = || state.promised_last.as_ref().map(|record| (self.reported_last(record), None));
        let everybody = state.status.map(|status| status.anonymous_access);
        Reported { everybody, own: own.or_else(before), token }
    }

    /// The token of the user for a cell, expired or not.
    fn own_token(&self, cell: CellIndex) -> Option<TokenInfo> {
        let name = &self.location.cell(cell)?.name;
        let is_own = |token: &TokenInfo| Some(token.owner) == self.context.user && token.cell == *name;
        self.identity.tokens().into_iter().find(is_own)
    }
}
