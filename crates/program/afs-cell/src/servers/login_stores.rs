//! Adapter from the databases of a cell to the stores of the login service, its records and the users, and from the
//! audit log to its records of what was done.

use afs_db::login::LoginError;
use afs_db::protection::{After, Fields, Kinds, ProtectionError, Refusal, Requester};
use afs_db::{LoginDb, ProtectionDb};
use afs_login::{LoginStore, Recorder, StoreError, User, Users};
use afs_rpc::{BoxFuture, Caller, Terms, UnixTime};
use afs_server::audit::{Audit, CallKind};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use std::sync::Arc;

/// Login records of users.
pub(super) struct LoginRecords(pub(super) Arc<dyn LoginDb>);

/// Users of the cell.
pub(super) struct LoginUsers(pub(super) Arc<dyn ProtectionDb>);

/// Records of the login service in the audit log.
pub(super) struct LoginAudit(pub(super) Audit);

impl Recorder for LoginAudit {
    fn record(&self, caller: &Caller, call: &'static str, about: &str, outcome: AbortCode) {
        self.0.record(caller, call, CallKind::Change, about.as_bytes().into(), outcome);
    }
}

fn of_records(error: LoginError) -> StoreError {
    match error {
        LoginError::NoQuorum => StoreError::NoQuorum,
        error => StoreError::Failed(error.to_string()),
    }
}

fn of_people(error: ProtectionError) -> StoreError {
    match error {
        ProtectionError::NoQuorum => StoreError::NoQuorum,
        error => StoreError::Failed(error.to_string()),
    }
}

impl LoginStore for LoginRecords {
    fn get<'a>(&'a self, user: &'a str, kind: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move { self.0.get(user, kind).await.map_err(of_records) })
    }

    fn put<'a>(
        &'a self,
        user: &'a str,
        kind: &'a str,
        record: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.0.put(user, kind, record).await.map_err(of_records) })
    }

    fn delete<'a>(&'a self, user: &'a str, kind: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move { self.0.delete(user, kind).await.map(drop).map_err(of_records) })
    }

    fn list<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<(String, Vec<u8>)>, StoreError>> {
        Box::pin(async move {
            let records = self.0.list(user).await.map_err(of_records)?;
            Ok(records.into_iter().map(|record| (record.kind, record.bytes)).collect())
        })
    }
}

impl LoginUsers {
    /// A user, as none of its groups tells.
    async fn find(&self, name: &str) -> Result<Option<User>, StoreError> {
        let ids = self.0.ids_of(vec![name.to_owned()]).await.map_err(of_people)?;
        let Some(id) = ids.first().copied().flatten().filter(|id| is_user(*id)) else { return Ok(None) };
        match self.0.status(Requester::CELL, id).await {
            Ok(status) => Ok(Some(User { id, administrator: false, tokens: status.entry.tokens })),
            Err(ProtectionError::Refused(Refusal::NoEntry)) => Ok(None),
            Err(error) => Err(of_people(error)),
        }
    }
}

impl Users for LoginUsers {
    fn user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, StoreError>> {
        Box::pin(self.find(name))
    }

    fn holder<'a>(
        &'a self,
        name: &'a str,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Option<User>, StoreError>> {
        Box::pin(async move {
            let Some(found) = self.find(name).await? else { return Ok(None) };
            match self.0.cps(found.id, terms.clone()).await {
                Ok(groups) => {
                    Ok(Some(User { administrator: groups.contains(&ViceId::ADMINISTRATORS), ..found }))
                }
                Err(ProtectionError::Refused(Refusal::Revoked)) => Ok(None),
                Err(error) => Err(of_people(error)),
            }
        })
    }

    fn after(&self, id: ViceId) -> BoxFuture<'_, Result<Vec<(ViceId, String)>, StoreError>> {
        Box::pin(async move {
            let kinds = Kinds { users: true, groups: false };
            let page = self.0.list(Requester::CELL, kinds, After(id), PAGE).await.map_err(of_people)?;
            Ok(page.items.into_iter().map(|status| (status.entry.id, status.entry.name)).collect())
        })
    }

    fn revoke_tokens(&self, id: ViceId, now: UnixTime) -> BoxFuture<'_, Result<(), StoreError>> {
        let fields = Fields { revoke_tokens: Some(now), ..Fields::default() };
        Box::pin(async move { self.0.set_fields(Requester::CELL, id, fields).await.map_err(of_people) })
    }

    fn ids_of(&self, names: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<ViceId>>, StoreError>> {
        Box::pin(async move { self.0.ids_of(names).await.map_err(of_people) })
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> BoxFuture<'a, Result<Vec<Option<String>>, StoreError>> {
        Box::pin(async move { self.0.names_of(ids.to_vec()).await.map_err(of_people) })
    }
}

/// Users that one look at the database reads.
const PAGE: usize = 256;

fn is_user(id: ViceId) -> bool {
    !id.is_group() && id != ViceId::ANONYMOUS && id.0 != 0
}
