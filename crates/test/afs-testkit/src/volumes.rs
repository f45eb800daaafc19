//! The volumes that a cell has from its beginning.

use std::net::Ipv4Addr;

use afs_db::{EntryKey, LocationDb, Proposal, ProposedSite, entry_flags, site_flags};
use afs_volume::{VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::ids::{Rights, ViceId, VolumeId, VolumeKind, VolumeName};

use crate::StartError;

/// A read-write volume that is made when its cell starts for the first time.
#[derive(Clone, Debug)]
pub struct NewVolume {
    /// Its name.
    pub name: String,
    /// Its quota in KiB; 0 is none.
    pub quota_kib: u32,
    /// The access list of its top directory.
    pub rights: Vec<(ViceId, Rights)>,
}

impl NewVolume {
    /// A volume without a quota, in which every caller has these rights.
    #[must_use]
    pub fn open_to_all(name: &str, rights: Rights) -> Self {
        Self { name: name.to_owned(), quota_kib: 0, rights: vec![(ViceId::ANYUSER, rights)] }
    }

    /// Makes the volume, and its entry unless a start that was interrupted has made it.
    pub(crate) async fn make(
        &self,
        store: &VolumeStore,
        db: &dyn LocationDb,
        server: Ipv4Addr,
    ) -> Result<(), StartError> {
        let id = match db.entry(EntryKey::Name(self.name.clone())).await {
            Ok(located) => located.entry.ids[0],
            Err(_) => self.enter(db, server).await?,
        };
        let spec = VolumeSpec {
            id,
            name: VolumeName::new(&self.name)?,
            owner: ViceId(1),
            max_quota: self.quota_kib,
            kind: VolumeKind::ReadWrite,
            parent: id,
            root: Some(Acl::new(self.rights.clone(), Vec::new())?),
        };
        store.create_volume(spec).await?;
        Ok(())
    }

    async fn enter(&self, db: &dyn LocationDb, server: Ipv4Addr) -> Result<VolumeId, StartError> {
        let id = db.new_volume_ids(3).await?;
        let flags = i32::from(site_flags::READ_WRITE);
        let proposal = Proposal {
            name: self.name.clone(),
            ids: [id, VolumeId(0), VolumeId(0)],
            clone: VolumeId(0),
            flags: entry_flags::RW_EXISTS,
            sites: vec![ProposedSite { address: server, partition: 0, flags }],
        };
        db.create(proposal).await?;
        Ok(id)
    }
}
