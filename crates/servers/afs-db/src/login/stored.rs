//! Login records over a store of rows.

use super::rows::{self, LOGIN};
use super::{LoginDb, LoginError, Pending, Record};
use crate::Store;

/// Login records whose rows are in a [`Store`]. A handle: clones share the store.
#[derive(Clone)]
pub struct StoredLoginDb<S>(S);

impl<S: Store> StoredLoginDb<S> {
    /// The records in a store, which may contain the databases too.
    pub fn over(store: S) -> Self {
        StoredLoginDb(store)
    }
}

impl<S: Store> LoginDb for StoredLoginDb<S> {
    fn get(&self, user: &str, kind: &str) -> Pending<'_, Option<Vec<u8>>> {
        let key = rows::key(user, kind);
        self.0.read(move |rows| Ok(rows.get(LOGIN, known(&key)?)?))
    }

    fn put(&self, user: &str, kind: &str, bytes: Vec<u8>) -> Pending<'_, ()> {
        let (key, prefix) = (rows::key(user, kind), rows::prefix(user));
        self.0.change(move |rows| rows::put(rows, known(&key)?, known(&prefix)?, &bytes))
    }

    fn delete(&self, user: &str, kind: &str) -> Pending<'_, bool> {
        let key = rows::key(user, kind);
        self.0.change(move |rows| {
            let key = known(&key)?;
            let existed = rows.get(LOGIN, key)?.is_some();
            rows.delete(LOGIN, key)?;
            Ok(existed)
        })
    }

    fn list(&self, user: &str) -> Pending<'_, Vec<Record>> {
        let prefix = rows::prefix(user);
        self.0.read(move |rows| rows::records(rows, known(&prefix)?))
    }

    fn forget(&self, user: &str) -> Pending<'_, ()> {
        let prefix = rows::prefix(user);
        self.0.change(move |rows| {
            let prefix = known(&prefix)?;
            for record in rows::records(rows, prefix)? {
                rows.delete(LOGIN, &[prefix, record.kind.as_bytes()].concat())?;
            }
            Ok(())
        })
    }
}

/// The key, or the error of making it.
fn known(key: &Result<Vec<u8>, LoginError>) -> Result<&[u8], LoginError> {
    key.as_deref().map_err(Clone::clone)
}
