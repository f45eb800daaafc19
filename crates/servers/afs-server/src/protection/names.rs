//! Name service over the protection database, for the servers of the cell.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use afs_db::ProtectionDb;
use afs_db::protection::{ProtectionError, Refusal, RequesterIdentity};
use afs_rpc::{BoxFuture, Class, Identity, Terms};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;

use super::cache::SubjectCache;
use super::requester::requester_identity;
use crate::subject::{NameService, Pending, Subject};

/// A [`NameService`] over a protection database.
///
/// A resolved caller is cached for as long as the database's version is unchanged, so a user removed from a
/// group is out of it at the next call. The cache is bounded to some megabytes.
pub struct ProtectionNames {
    db: Arc<dyn ProtectionDb>,
    found: SubjectCache,
    /// Names of this cell and its realms.
    local: Vec<String>,
}

impl ProtectionNames {
    /// A name service over `db`. `local` are the names of this cell and its realms, which may follow the name
    /// of a user.
    pub fn new(db: Arc<dyn ProtectionDb>, local: Vec<String>) -> Self {
        ProtectionNames { db, found: SubjectCache::default(), local }
    }

    /// The subject of a caller, with its groups (docs/protocol fileserver.md "5.1 Caller identity").
    async fn look_up(&self, requester: RequesterIdentity, host: IpAddr) -> Result<Subject, AbortCode> {
        // Read before the queries: their results may be newer than this version, never older.
        let version = self.db.version();
        let key = (requester, host);
        if let Some(subject) = self.found.get(version, &key) {
            return Ok(subject);
        }
        let subject = match &key.0 {
            RequesterIdentity::CellKey => Subject::administrator(),
            RequesterIdentity::Anonymous => Subject::anonymous(),
            RequesterIdentity::Local { name, .. } if name.contains('@') => Subject::anonymous(),
            RequesterIdentity::Local { name, terms } | RequesterIdentity::Foreign { name, terms } => {
                self.named(name, terms).await?
            }
        };
        let subject = self.on_host(subject, host).await?;
        self.found.put(version, key, subject.clone());
        Ok(subject)
    }

    /// The subject of a name with a token of these terms; names without an entry, and names of groups, are anonymous.
    async fn named(&self, name: &str, terms: &Terms) -> Result<Subject, AbortCode> {
        let found = self.db.ids_of(vec![name.into()]).await.map_err(unavailable)?;
        let user = found.into_iter().flatten().find(|id| !id.is_group() && *id != ViceId::ANONYMOUS);
        let Some(id) = user else { return Ok(Subject::anonymous()) };
        match self.db.cps(id, terms.clone()).await {
            Ok(groups) => Ok(Subject::new(id, groups)),
            // Deleted since the previous query.
            Err(ProtectionError::Refused(Refusal::NoEntry)) => Ok(Subject::anonymous()),
            Err(ProtectionError::Refused(Refusal::Revoked)) => Err(Refusal::Revoked.code()),
            Err(error) => Err(unavailable(error)),
        }
    }

    async fn on_host(&self, subject: Subject, host: IpAddr) -> Result<Subject, AbortCode> {
        let IpAddr::V4(host) = host.to_canonical() else { return Ok(subject) };
        if host == Ipv4Addr::UNSPECIFIED {
            return Ok(subject);
        }
        Ok(subject.on_host_in(self.db.host_cps(host).await.map_err(unavailable)?))
    }

    /// A name in the form in which the database stores it.
    fn stored(&self, name: &str) -> String {
        let name = name.to_ascii_lowercase();
        match name.split_once('@') {
            Some((user, cell)) if self.local.iter().any(|own| own.eq_ignore_ascii_case(cell)) => user.into(),
            _ => name,
        }
    }
}

impl NameService for ProtectionNames {
    fn subject<'a>(&'a self, identity: &'a Identity, host: IpAddr) -> Pending<'a, Subject> {
        Box::pin(async move {
            let found = self.look_up(requester_identity(identity), host).await;
            found.map_err(|code| as_known_to(identity, code))
        })
    }

    fn ids_of<'a>(&'a self, names: &'a [String]) -> Pending<'a, Vec<Option<ViceId>>> {
        let names = names.iter().map(|name| self.stored(name)).collect();
        Box::pin(async move { self.db.ids_of(names).await.map_err(unavailable) })
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> Pending<'a, Vec<Option<String>>> {
        Box::pin(async move { self.db.names_of(ids.to_vec()).await.map_err(unavailable) })
    }

    fn version(&self) -> Option<u64> {
        Some(self.db.version())
    }

    fn changed(&self, since: u64) -> Option<BoxFuture<'_, ()>> {
        Some(self.db.changed(since))
    }

    fn follows_changes(&self) -> bool {
        self.db.follows_changes()
    }
}

/// The code as the client's security class has it: a token that was revoked has expired.
pub(super) fn as_known_to(identity: &Identity, code: AbortCode) -> AbortCode {
    match (code, identity.protection().class) {
        (AbortCode::RXGKEXPIRED, Class::Rxkad) => AbortCode::RXKADEXPIRED,
        (code, _) => code,
    }
}

/// The code for a call whose identity cannot be resolved: the client is to retry.
fn unavailable(error: ProtectionError) -> AbortCode {
    tracing::error!(%error, "who a caller is cannot be learned");
    AbortCode::CPS_UNAVAILABLE
}
