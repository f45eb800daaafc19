//! Calls that list, add and remove a user's SSH keys.

use std::sync::Arc;

use afs_rpc::Caller;
use afs_wire::error::AbortCode;
use afs_wire::ids::UnixSeconds;
use afs_wire::login::{self, KEYS_MAX, Ways};
use afs_wire::xdr::BoundedVec;

use super::{LoginServer, check_version};
use crate::ssh::UserKey;

impl LoginServer {
    pub(super) async fn add_ssh_key(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::AddSshKey,
    ) -> Result<(), AbortCode> {
        check_version(ask.version)?;
        let target = self.target(caller, &ask.user).await?;
        let key = UserKey::from_wire(&ask.key).map_err(|_| AbortCode::LGNBADKEY)?;
        let keys = self.records.keys(&target.user, target.id).await?;
        if keys.len() >= KEYS_MAX && !keys.iter().any(|known| known.key == *key.blob()) {
            return Err(AbortCode::LGNFULL);
        }
        self.records.add_key(&target.user, target.id, &key, ask.comment, self.today()).await?;
        tracing::info!(user = %target.user, by = ?caller.identity.principal(), %key, "SSH key added");
        Ok(())
    }

    pub(super) async fn remove_ssh_key(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::RemoveSshKey,
    ) -> Result<(), AbortCode> {
        check_version(ask.version)?;
        let target = self.target(caller, &ask.user).await?;
        let key = UserKey::from_wire(&ask.key).map_err(|_| AbortCode::LGNBADKEY)?;
        self.records.next_generation(&target.user, &self.env).await?;
        self.records.remove_key(&target.user, &key).await?;
        tracing::info!(user = %target.user, by = ?caller.identity.principal(), %key, "SSH key removed");
        Ok(())
    }

    pub(super) async fn list_ways(
        self: &Arc<Self>,
        caller: &Caller,
        ask: login::ListWays,
    ) -> Result<login::ListWaysReply, AbortCode> {
        check_version(ask.version)?;
        let target = self.target(caller, &ask.user).await?;
        let passphrase = self.records.passphrase(&target.user, target.id).await?;
        let passphrase = passphrase.map_or(UnixSeconds(0), |record| record.set);
        let keys = BoundedVec::first_of(self.records.keys(&target.user, target.id).await?);
        Ok(login::ListWaysReply { ways: Ways { passphrase, keys } })
    }
}
