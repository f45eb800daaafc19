//! Creation of a cell: its first volumes, their mount points, and the registration of the file server.
//!
//! Each step first checks whether it is already done, so a bootstrap that crashed is completed by running it
//! again, and running it again changes nothing.

use std::net::Ipv4Addr;
use std::sync::Arc;

use afs_db::{
    EntryKey, Located, LocationDb, LocationError, Proposal, ProposedSite, Refusal, entry_flags, site_flags,
};
use afs_volume::{Actor, Volume, VolumeError, VolumeSpec, VolumeStore};
use afs_wire::acl::Acl;
use afs_wire::fs::SetStatus;
use afs_wire::ids::{
    CellName, Fid, NameError, PartitionId, Rights, Uuid, ViceId, VolumeId, VolumeKind, VolumeName,
};
use afs_wire::mountpoint;

use crate::partitions::Partitions;
use crate::subject::ADMIN;

/// The volume mounted at `/afs`.
pub const ROOT_AFS: &str = "root.afs";
/// The volume mounted at `/afs/<cell>`.
pub const ROOT_CELL: &str = "root.cell";

/// The parameters of a new cell.
#[derive(Clone, Debug)]
pub struct CellSpec {
    /// Its name, under which its root is mounted.
    pub cell: CellName,
    /// The permanent name of the file server.
    pub server: Uuid,
    /// Addresses of the file server: 1 to 15.
    pub addresses: Vec<Ipv4Addr>,
    /// The partition of the first volumes.
    pub partition: PartitionId,
    /// Rights of `system:anyuser` on the cell's root directory. Default for a public cell: `rl`.
    pub anyuser: Rights,
    /// The quota of the cell's root volume in KiB; 0 is no limit.
    pub quota: u32,
}

/// The first volumes of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirstVolumes {
    /// [`ROOT_AFS`].
    pub root_afs: VolumeId,
    /// [`ROOT_CELL`].
    pub root_cell: VolumeId,
}

/// Why a cell could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootstrapError {
    /// The location database refused or failed.
    #[error("the location database: {0}")]
    Location(#[from] LocationError),
    /// The volume store refused or failed.
    #[error("the volume store: {0}")]
    Volume(#[from] VolumeError),
    /// The server has no such partition.
    #[error("partition {0} is not there")]
    NoPartition(PartitionId),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// Creates whatever the cell lacks: registers the server, creates `root.afs` and `root.cell`, and mounts the
/// second in the first, under the cell's name (read-only where a replica exists), and read-write under the
/// name with a leading dot.
pub async fn bootstrap(
    db: &dyn LocationDb,
    partitions: &Partitions,
    spec: &CellSpec,
) -> Result<FirstVolumes, BootstrapError> {
    db.register(spec.server, spec.addresses.clone()).await?;
    let store = partitions.store(spec.partition).ok_or(BootstrapError::NoPartition(spec.partition))?;
    let top = acl(Rights::READ | Rights::LOOKUP);
    let root_afs = ensure_volume(db, store, spec, ROOT_AFS, top, 0).await?;
    let root_cell = ensure_volume(db, store, spec, ROOT_CELL, acl(spec.anyuser), spec.quota).await?;
    if let Some(volume) = partitions.volume(root_afs) {
        ensure_mounts(&volume, &spec.cell).await?;
    }
    Ok(FirstVolumes { root_afs, root_cell })
}

fn acl(anyuser: Rights) -> Acl {
    let mut acl = Acl::of_new_volume();
    if anyuser != Rights::NONE {
        acl.positive.push((ViceId::ANYUSER, anyuser));
        acl.positive.sort_unstable();
    }
    acl
}

/// Ensures that a volume is in the store and in the location database. A volume that the database sites at
/// another server is left alone.
async fn ensure_volume(
    db: &dyn LocationDb,
    store: &VolumeStore,
    spec: &CellSpec,
    name: &str,
    root_acl: Acl,
    max_quota: u32,
) -> Result<VolumeId, BootstrapError> {
    let name = VolumeName::new(name)?;
    let recorded = match db.entry(EntryKey::Name(name.to_string())).await {
        Ok(located) => Some(located),
        Err(LocationError::Refused(Refusal::NoEntry)) => None,
        Err(error) => return Err(error.into()),
    };
    let stored = store.volumes().into_iter().find(|volume| volume.header().name == name);
    let id = match (&recorded, &stored) {
        (Some(located), _) => located.entry.ids[0],
        (None, Some(volume)) => volume.id(),
        (None, None) => db.new_volume_ids(1).await?,
    };
    let here = recorded.as_ref().is_none_or(|located| is_home(located, spec.server));
    if here && stored.is_none() && store.volume(id).is_none() {
        let (kind, parent, root) = (VolumeKind::ReadWrite, id, Some(root_acl));
        store
            .create_volume(VolumeSpec { id, name: name.clone(), kind, parent, owner: ADMIN, max_quota, root })
            .await?;
    }
    if recorded.is_none() {
        // A group has three ids from the start, whether or not its other volumes are ever created.
        let others = db.new_volume_ids(2).await?;
        db.create(proposal(spec, &name, [id, others, VolumeId(others.0 + 1)])).await?;
    }
    Ok(id)
}

/// Whether the read-write volume is at a server. A server with only a read-only copy is not its home.
fn is_home(located: &Located, server: Uuid) -> bool {
    let mut sites = located.entry.sites.iter().zip(&located.servers);
    sites.any(|(site, at)| site.flags & site_flags::READ_WRITE != 0 && at.uuid == Some(server))
}

fn proposal(spec: &CellSpec, name: &VolumeName, ids: [VolumeId; 3]) -> Proposal {
    let site = ProposedSite {
        address: spec.addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED),
        partition: spec.partition.0.into(),
        flags: site_flags::READ_WRITE.into(),
    };
    Proposal {
        name: name.to_string(),
        ids,
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![site],
    }
}

async fn ensure_mounts(volume: &Arc<Volume>, cell: &CellName) -> Result<(), VolumeError> {
    let root = Fid::root(volume.id());
    let wanted =
        [(cell.to_string(), format!("#{ROOT_CELL}.")), (format!(".{cell}"), format!("%{ROOT_CELL}."))];
    let change = volume.update(move |tx| {
        for (name, text) in &wanted {
            let directory = tx.directory(root)?;
            if tx.lookup(&directory, name.as_bytes())?.is_none() {
                let set = SetStatus { mode: Some(mountpoint::MODE), ..SetStatus::default() };
                let actor = Actor { id: ADMIN, administrator: true };
                tx.symlink(root, name.as_bytes(), text.as_bytes(), &set, actor)?;
            }
        }
        Ok(())
    });
    change.await
}
