//! Revocation of tokens: of a user, or of everybody who has logged in from an address.

use std::net::IpAddr;
use std::sync::Arc;

use afs_rpc::Caller;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::login::{self, HostAddress};
use afs_wire::xdr::BoundedVec;

use super::authority::Target;
use super::records::failed;
use super::{LoginServer, check_version};
use crate::user::UserName;

impl LoginServer {
    pub(super) async fn revoke(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::Revoke,
    ) -> Result<login::RevokeReply, AbortCode> {
        check_version(ask.version)?;
        let targets = match ask.host.is_empty() {
            true => vec![self.target(caller, &ask.user).await?],
            false => self.users_of_host(caller, &ask.host).await?,
        };
        for target in &targets {
            self.revoke_of(target, ask.remove_ways).await?;
            let (user, by) = (&target.user, caller.identity.principal());
            tracing::info!(%user, ?by, ways_removed = ask.remove_ways, "revoked the tokens of a user");
        }
        let users = BoundedVec::first_of(targets.iter().map(|target| target.user.to_wire()));
        Ok(login::RevokeReply { users })
    }

    /// First what makes new tokens, so that none is made in between that stays.
    async fn revoke_of(&self, target: &Target, remove_ways: bool) -> Result<(), AbortCode> {
        self.records.next_generation(&target.user, &self.env).await?;
        if remove_ways {
            self.records.remove_ways(&target.user, target.id).await?;
        }
        self.users.revoke_tokens(target.id, self.env.wall()).await.map_err(failed)
    }

    /// The users who have logged in from an address, for an administrator.
    async fn users_of_host(&self, caller: &Caller, host: &HostAddress) -> Result<Vec<Target>, AbortCode> {
        let host = address(host).ok_or(AbortCode::RXGEN_SS_UNMARSHAL)?;
        self.administrator(caller).await?;
        let (mut found, mut last) = (Vec::new(), ViceId(0));
        loop {
            let page = self.users.after(last).await.map_err(failed)?;
            let Some((id, _)) = page.last() else { return Ok(found) };
            last = *id;
            for (id, name) in page {
                let Ok(user) = UserName::new(&name) else { continue };
                if self.has_been_at(&user, id, host).await? {
                    found.push(Target { user, id });
                }
            }
            if found.len() > login::REVOKED_MAX {
                return Err(AbortCode::LGNFULL);
            }
        }
    }
}

pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
