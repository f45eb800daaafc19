//! Adapter from the databases of a cell to the stores of the login service: its records, and the users.

use afs_db::login::LoginError;
use afs_db::protection::ProtectionError;
use afs_db::{LoginDb, ProtectionDb};
use afs_login::{LoginStore, StoreError, User, Users};
use afs_rpc::{BoxFuture, Suspended};
use afs_wire::ids::ViceId;
use std::sync::Arc;

/// Login records of users.
pub(super) struct LoginRecords(pub(super) Arc<dyn LoginDb>);

/// Users of the cell.
pub(super) struct LoginUsers(pub(super) Arc<dyn ProtectionDb>);

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

impl Users for LoginUsers {
    fn user<'a>(
        &'a self,
        name: &'a str,
        suspended: &'a Suspended,
    ) -> BoxFuture<'a, Result<Option<User>, StoreError>> {
        Box::pin(async move {
            let ids = self.0.ids_of(vec![name.to_owned()]).await.map_err(of_people)?;
            let Some(id) = ids.first().copied().flatten().filter(|id| is_user(*id)) else { return Ok(None) };
            let groups = self.0.cps(id, suspended.clone()).await.map_err(of_people)?;
            Ok(Some(User { id, administrator: groups.contains(&ViceId::ADMINISTRATORS) }))
        })
    }

    fn ids_of(&self, names: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<ViceId>>, StoreError>> {
        Box::pin(async move { self.0.ids_of(names).await.map_err(of_people) })
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> BoxFuture<'a, Result<Vec<Option<String>>, StoreError>> {
        Box::pin(async move { self.0.names_of(ids.to_vec()).await.map_err(of_people) })
    }
}

fn is_user(id: ViceId) -> bool {
    !id.is_group() && id != ViceId::ANONYMOUS && id.0 != 0
}
