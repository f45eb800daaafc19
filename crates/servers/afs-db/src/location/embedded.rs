//! The location database in the transactional store of one process.

use afs_kv::Kv;

use super::StoredLocationDb;
use crate::EmbeddedRows;

/// A location database whose rows are tables of an [`afs_kv::Kv`].
pub type EmbeddedLocationDb = StoredLocationDb<EmbeddedRows>;

impl EmbeddedLocationDb {
    /// A database in a store that was opened with at least [`crate::TABLES`].
    pub fn new(kv: Kv) -> Self {
        Self::over(EmbeddedRows::new(kv))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use afs_kv::{Config, MemoryMedium};
    use afs_rpc::Parts;

    use super::*;
    use afs_wire::ids::{Uuid, VolumeId};

    use crate::{
        EntryKey, Filter, LocationDb, LocationError, Pending, Proposal, ProposedSite, Refusal, TABLES,
        Totals, entry_flags,
    };

    /// With blocking work run inline every result is ready at the first poll.
    fn wait<T>(answer: Pending<'_, T>) -> Result<T, LocationError> {
        match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("an inline store answers at once"),
        }
    }

    fn open(medium: &MemoryMedium) -> EmbeddedLocationDb {
        let medium = Arc::new(medium.clone());
        EmbeddedLocationDb::new(Kv::open(medium, TABLES, Parts::inline(), Config::default()).unwrap())
    }

    fn root_cell() -> Proposal {
        Proposal {
            name: "root.cell".into(),
            ids: [VolumeId(0x2000_0000), VolumeId(0), VolumeId(0)],
            clone: VolumeId(0),
            flags: entry_flags::RW_EXISTS,
            sites: vec![ProposedSite { address: Ipv4Addr::new(10, 0, 0, 1), partition: 0, flags: 4 }],
        }
    }

    #[test]
    fn entries_outlive_the_process() {
        let medium = MemoryMedium::default();
        let uuid = Uuid([5; 16]);
        {
            let db = open(&medium);
            wait(db.register(uuid, vec![Ipv4Addr::new(10, 0, 0, 1)])).unwrap();
            assert_eq!(wait(db.new_volume_ids(1)), Ok(VolumeId(0x2000_0000)));
            wait(db.create(root_cell())).unwrap();
        }
        let db = open(&medium);
        let located = wait(db.entry(EntryKey::Name("root.cell.readonly".into()))).unwrap();
        assert_eq!(located.servers[0].uuid, Some(uuid));
        let totals = Totals { entries: 1, next_volume_id: VolumeId(0x2000_0001) };
        assert_eq!(wait(db.totals()), Ok(totals));
    }

    #[test]
    fn a_refused_change_leaves_nothing() {
        let db = open(&MemoryMedium::default());
        let mut bad = root_cell();
        bad.sites.push(ProposedSite { address: Ipv4Addr::new(10, 0, 0, 2), partition: 999, flags: 4 });
        assert_eq!(wait(db.create(bad)), Err(Refusal::BadPartition.into()));
        wait(db.create(root_cell())).unwrap();
        assert_eq!(wait(db.create(root_cell())), Err(Refusal::IdExists.into()));
        assert_eq!(wait(db.servers()).unwrap().len(), 1);
        assert_eq!(wait(db.list(Filter::default(), 0, 10)).unwrap().entries.len(), 1);
    }
}
