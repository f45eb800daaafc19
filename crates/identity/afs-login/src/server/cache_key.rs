//! The key of a user's encrypted caches, for who has a token of that user that counts.

use std::sync::Arc;

use afs_rpc::{Caller, Level};
use afs_wire::error::AbortCode;
use afs_wire::login::{self, Fixed};

use super::records::failed;
use super::renew::renewing;
use super::{LoginServer, check_version};

impl LoginServer {
    /// For the user alone: an administrator would read with it what the user has not stored.
    pub(super) async fn cache_key(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::CacheKey,
    ) -> Result<login::CacheKeyReply, AbortCode> {
        check_version(ask.version)?;
        let (user, terms) = renewing(&caller.identity)?;
        if caller.identity.protection().level < Level::Crypt {
            return Err(AbortCode::LGNPROTECTION);
        }
        let holder = self.users.holder(user.as_str(), &terms).await.map_err(failed)?;
        let id = holder.ok_or(AbortCode::RXGKEXPIRED)?.id;
        tracing::info!(%user, "gave the key of encrypted caches to its user");
        Ok(login::CacheKeyReply { key: Fixed(self.secret.cache_key(&user, id)) })
    }
}
