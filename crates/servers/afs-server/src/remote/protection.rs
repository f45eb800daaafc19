//! Protection database behind the network: names and memberships from the cell's protection servers.

use std::net::Ipv4Addr;
use std::sync::Arc;

use afs_db::ProtectionDb;
use afs_db::protection::{
    After, BAD_ID, Change, Fields, Kinds, NewEntry, Page, Pending, ProtectionError, Refusal, Requester,
    RequesterIdentity, Status,
};
use afs_rpc::{BoxFuture, CallError, EnvRef, Suspended, Terms, TokenGeneration, UnixTime};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{
    GetCps, GetHostCps, IdToName, Ids, IdsReply, ListElements, ListEntry, NameChars, NameToId, Names,
};

use super::DatabaseServers;
use super::changes::Changes;
use super::memberships;

/// A protection database behind the network, with the queries of a file server. It makes no changes: those go
/// to the protection servers directly.
///
/// Protection servers of ours tell it of changes, so a user removed from a group is out of it here at once. With others, and while
/// none replies, its version changes once a minute: the user is out of the group at most a minute later.
pub struct RemoteProtectionDb {
    changes: Arc<Changes>,
    servers: Arc<DatabaseServers>,
    anonymous: DatabaseServers,
}

impl RemoteProtectionDb {
    /// The protection servers of a cell, called with the cell's key; and the same servers called anonymously,
    /// for queries by callers who may see only what every caller may.
    pub fn new(env: EnvRef, servers: DatabaseServers, anonymous: DatabaseServers) -> Self {
        let servers = Arc::new(servers);
        RemoteProtectionDb { changes: Changes::follow(env, servers.clone()), servers, anonymous }
    }

    /// The generation of the user's tokens that count. Servers of others revoke none.
    async fn token_generation(&self, id: ViceId) -> Result<TokenGeneration, ProtectionError> {
        match self.servers.call(&ListEntry { id }).await {
            Ok(reply) => Ok(TokenGeneration(reply.entry.token_generation())),
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => Ok(TokenGeneration::default()),
            Err(other) => Err(error(other)),
        }
    }

    fn servers_for(&self, requester: &Requester) -> &DatabaseServers {
        if requester.identity == RequesterIdentity::CellKey { &self.servers } else { &self.anonymous }
    }
}

impl ProtectionDb for RemoteProtectionDb {
    fn version(&self) -> u64 {
        self.changes.version()
    }

    fn changed(&self, since: u64) -> BoxFuture<'_, ()> {
        Box::pin(self.changes.changed(since))
    }

    fn follows_changes(&self) -> bool {
        self.changes.follows()
    }

    fn ids_of(&self, names: Vec<String>) -> Pending<'_, Vec<Option<ViceId>>> {
        Box::pin(async move {
            let texts = names.iter().map(|name| NameChars::truncated(name.as_bytes()));
            let asked = NameToId { names: Names::first_of(texts) };
            let ids = self.servers.call(&asked).await.map_err(error)?.ids.into_vec();
            // Unknown names come back as the anonymous id, which is the correct result only for the anonymous
            // user's own name.
            let found = |(id, name): (ViceId, &String)| {
                (id != ViceId::ANONYMOUS || Some(name.as_str()) == id.well_known_name()).then_some(id)
            };
            Ok(ids.into_iter().zip(&names).map(found).collect())
        })
    }

    fn names_of(&self, ids: Vec<ViceId>) -> Pending<'_, Vec<Option<String>>> {
        Box::pin(async move {
            let asked = IdToName { ids: Ids::first_of(ids.iter().copied()) };
            let names = self.servers.call(&asked).await.map_err(error)?.names.into_vec();
            // Unknown ids come back as their decimal text.
            let found = |(name, id): (NameChars, &ViceId)| {
                String::from_utf8(name.text().to_vec()).ok().filter(|name| *name != id.to_string())
            };
            Ok(names.into_iter().zip(&ids).map(found).collect())
        })
    }

    fn cps(&self, id: ViceId, terms: Terms) -> Pending<'_, Vec<ViceId>> {
        Box::pin(async move {
            if !terms.count_in(self.token_generation(id).await?) {
                return Err(Refusal::Revoked.into());
            }
            let suspended = terms.suspended;
            let mut all = self.servers.call(&GetCps { id }).await.map(ids).map_err(error)?;
            if all.iter().any(|group| suspended.has(*group)) {
                let kept = memberships::without(&self.servers, id, &suspended).await.map_err(error)?;
                // The user's own id, and the groups of every user, are no memberships.
                all.retain(|id| !Suspended::may_have(*id) || kept.contains(id));
            }
            Ok(all)
        })
    }

    fn host_cps(&self, host: Ipv4Addr) -> Pending<'_, Vec<ViceId>> {
        Box::pin(async move {
            match self.servers.call(&GetHostCps { host }).await {
                // No entry has the host's address as its name.
                Err(CallError::Abort(AbortCode::PRNOENT)) => Ok(Vec::new()),
                answer => answer.map(ids).map_err(error),
            }
        })
    }

    fn elements(&self, requester: Requester, id: ViceId) -> Pending<'_, Vec<ViceId>> {
        Box::pin(async move {
            self.servers_for(&requester).call(&ListElements { id }).await.map(ids).map_err(error)
        })
    }

    fn cps_of(&self, requester: Requester, id: ViceId, host: Option<Ipv4Addr>) -> Pending<'_, Vec<ViceId>> {
        Box::pin(async move {
            let mut all = match id {
                BAD_ID => Vec::new(),
                id => self.servers_for(&requester).call(&GetCps { id }).await.map(ids).map_err(error)?,
            };
            if let Some(host) = host {
                all.extend(self.host_cps(host).await?);
            }
            all.sort_unstable();
            all.dedup();
            Ok(all)
        })
    }

    fn identify(&self, requester: Requester) -> Pending<'_, ViceId> {
        Box::pin(async move {
            match requester.identity {
                RequesterIdentity::CellKey => Ok(ViceId::ADMINISTRATORS),
                RequesterIdentity::Anonymous => Ok(ViceId::ANONYMOUS),
                RequesterIdentity::Foreign { .. } => Err(Refusal::Permission.into()),
                RequesterIdentity::Local { name, .. } => {
                    let found = self.ids_of(vec![name]).await?;
                    found.into_iter().flatten().next().ok_or_else(|| Refusal::Permission.into())
                }
            }
        })
    }

    fn create(&self, _: Requester, _: NewEntry) -> Pending<'_, ViceId> {
        elsewhere()
    }

    fn delete(&self, _: Requester, _: ViceId, _: UnixTime) -> Pending<'_, ()> {
        elsewhere()
    }

    fn change(&self, _: Requester, _: ViceId, _: Change, _: UnixTime) -> Pending<'_, ()> {
        elsewhere()
    }

    fn set_fields(&self, _: Requester, _: ViceId, _: Fields) -> Pending<'_, ()> {
        elsewhere()
    }

    fn add_member(&self, _: Requester, _: ViceId, _: ViceId) -> Pending<'_, ()> {
        elsewhere()
    }

    fn remove_member(&self, _: Requester, _: ViceId, _: ViceId) -> Pending<'_, ()> {
        elsewhere()
    }

    fn status(&self, _: Requester, _: ViceId) -> Pending<'_, Status> {
        elsewhere()
    }

    fn supergroups(&self, _: Requester, _: ViceId) -> Pending<'_, Vec<ViceId>> {
        elsewhere()
    }

    fn is_member(&self, _: Requester, _: ViceId, _: ViceId) -> Pending<'_, bool> {
        elsewhere()
    }

    fn owned(&self, _: Requester, _: ViceId, _: After, _: usize) -> Pending<'_, Page<ViceId>> {
        elsewhere()
    }

    fn list(&self, _: Requester, _: Kinds, _: After, _: usize) -> Pending<'_, Page<Status>> {
        elsewhere()
    }

    fn max_ids(&self) -> Pending<'_, (ViceId, ViceId)> {
        elsewhere()
    }

    fn set_max_id(&self, _: Requester, _: ViceId, _: bool) -> Pending<'_, ()> {
        elsewhere()
    }

    fn bootstrap(&self, _: String) -> Pending<'_, ()> {
        elsewhere()
    }
}

pub(super) fn ids(reply: IdsReply) -> Vec<ViceId> {
    let mut ids = reply.ids.into_vec();
    ids.sort_unstable();
    ids
}

/// The result of calls that the protection servers themselves must be asked for.
fn elsewhere<'a, T: Send + 'a>() -> Pending<'a, T> {
    Box::pin(std::future::ready(Err(Refusal::Permission.into())))
}

fn error(error: CallError) -> ProtectionError {
    match error {
        CallError::Abort(AbortCode::PRNOENT) => Refusal::NoEntry.into(),
        CallError::Abort(AbortCode::PRPERM) => Refusal::Permission.into(),
        error => ProtectionError::Store(format!("the protection servers: {error}")),
    }
}
