//! Login records in the transactional store of one process.

use afs_kv::Kv;

use super::StoredLoginDb;
use crate::EmbeddedRows;

/// Login records as a table of an [`afs_kv::Kv`], which may contain the other databases too.
pub type EmbeddedLoginDb = StoredLoginDb<EmbeddedRows>;

impl EmbeddedLoginDb {
    /// Records in a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        Self::over(EmbeddedRows::new(kv))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use afs_kv::{Config, MemoryMedium};
    use afs_rpc::Parts;

    use super::*;
    use crate::login::{LoginDb, LoginError, RECORD_MAX, RECORDS_MAX};
    use crate::test_answers::wait;

    fn open(medium: &MemoryMedium) -> EmbeddedLoginDb {
        let medium = Arc::new(medium.clone());
        EmbeddedLoginDb::new(Kv::open(medium, crate::TABLES, Parts::inline(), Config::default()).unwrap())
    }

    #[test]
    fn records_outlive_the_process_and_do_not_mix() {
        let medium = MemoryMedium::default();
        {
            let db = open(&medium);
            wait(db.put("alice", "ssh/2", vec![2])).unwrap();
            wait(db.put("alice", "ssh/1", vec![1])).unwrap();
            wait(db.put("alice2", "ssh/1", vec![3])).unwrap();
            wait(db.put("alic", "opaque", vec![4])).unwrap();
        }
        let db = open(&medium);
        assert_eq!(wait(db.get("alice", "ssh/2")), Ok(Some(vec![2])));
        let kinds = |user| wait(db.list(user)).unwrap().into_iter().map(|r| r.kind).collect::<Vec<_>>();
        assert_eq!(kinds("alice"), ["ssh/1", "ssh/2"]);
        assert_eq!(wait(db.delete("alice", "ssh/2")), Ok(true));
        assert_eq!(wait(db.delete("alice", "ssh/2")), Ok(false));
        wait(db.forget("alice")).unwrap();
        assert_eq!((kinds("alice").len(), kinds("alice2").len(), kinds("alic").len()), (0, 1, 1));
    }

    #[test]
    fn bounds_hold_and_secrets_are_not_printed() {
        let db = open(&MemoryMedium::default());
        for (user, kind, error) in [
            ("", "k", LoginError::BadUser),
            ("a\0b", "k", LoginError::BadUser),
            ("a", "", LoginError::BadKind),
        ] {
            assert_eq!(wait(db.put(user, kind, vec![])), Err(error));
        }
        let long = vec![0; RECORD_MAX + 1];
        assert_eq!(wait(db.put("a", "k", long)), Err(LoginError::TooLong(RECORD_MAX + 1)));
        for n in 0..RECORDS_MAX {
            wait(db.put("a", &format!("k{n}"), vec![77])).unwrap();
        }
        assert_eq!(wait(db.put("a", "one more", vec![])), Err(LoginError::TooMany));
        wait(db.put("a", "k0", vec![78])).unwrap();
        assert!(!format!("{:?}", wait(db.list("a")).unwrap()).contains("77"));
    }
}
