//! The directory of a volume's snapshots, found in the volume's root.
//!
//! It has no promises, so the kernel must not cache it. The directories in it are read-only volumes like any other.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Status};
use afs_wire::ids::{DataVersion, Fid, Mode, Rights, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vol::Snapshot;

use crate::api::{Attr, DirEntry, NodeId};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::{CellIndex, Key, NodeTarget};
use crate::location::{Entered, KnownSnapshots, Volume, volume_query};
use crate::names;
use crate::venus::Venus;

impl Venus {
    /// From the root of a volume to its directory of snapshots; `missing` if it cannot have any.
    pub(super) async fn step_to_snapshots(
        &self,
        root: Key,
        missing: VenusError,
    ) -> Result<(NodeTarget, Status)> {
        self.kernel.note_unpromised();
        let volume = self.volume_of(root).await?;
        match self.snapshots_of(&volume).await? {
            Some(_) => Ok((NodeTarget::Snapshots(root.cell, volume.id), Status::default())),
            None => Err(missing),
        }
    }

    /// One step from the directory of snapshots.
    pub(super) async fn step_into_snapshot(
        &self,
        node: NodeId,
        cell: CellIndex,
        volume: VolumeId,
        name: &[u8],
    ) -> Result<(NodeTarget, Status)> {
        self.kernel.note_unpromised();
        if name == b"." {
            return Ok((NodeTarget::Snapshots(cell, volume), Status::default()));
        }
        let root = Key::new(cell, Fid::root(volume));
        if name == b".." {
            return self.status_at(NodeTarget::Object(root)).await;
        }
        let snapshots = self.visible_snapshots(cell, volume).await?;
        let found = snapshots.iter().find(|snapshot| snapshot.name.as_bytes() == name);
        let found = found.ok_or(VenusError::new(ErrorKind::NotFound, "lookup").of(root.fid))?;
        let snapshot = self.snapshot_volume(cell, volume, found).await?;
        let text = format!("#{}.", found.volume);
        snapshot.enter(Entered { parent: node, text });
        self.status_at(NodeTarget::Object(Key::new(cell, Fid::root(snapshot.id)))).await
    }

    /// The volume of a snapshot, at the site in the location database or else at that of the original volume.
    pub(super) async fn snapshot_volume(
        &self,
        cell: CellIndex,
        of: VolumeId,
        snapshot: &Snapshot,
    ) -> Result<Arc<Volume>> {
        let volume = match self.location.volumes().get(cell, snapshot.volume) {
            Some(volume) => volume,
            None => {
                let group = match self.group(cell, &volume_query(snapshot.volume)).await {
                    Err(error) if error.kind == ErrorKind::NoVolume => self.volume(cell, of).await?.group(),
                    other => other?,
                };
                self.learn_volume(cell, &group, snapshot.volume, VolumeKind::Backup).await?
            }
        };
        volume.set_made_at(snapshot.created);
        Ok(volume)
    }

    /// The snapshots of a volume, for a user who may list its root.
    pub(super) async fn visible_snapshots(
        &self,
        cell: CellIndex,
        volume: VolumeId,
    ) -> Result<Arc<[Snapshot]>> {
        let volume = self.volume(cell, volume).await?;
        let root = self.vnode(Key::new(cell, Fid::root(volume.id)));
        let may_look = |rights: Rights| rights.contains(Rights::LOOKUP);
        if !may_look(self.rights_in(&root, &volume, may_look).await?) {
            return Err(VenusError::new(ErrorKind::AccessDenied, "lookup").of(root.key.fid));
        }
        let known = self.snapshots_of(&volume).await?;
        known.ok_or(VenusError::new(ErrorKind::Stale, "lookup").of(root.key.fid))
    }

    /// The snapshots of a volume; `None` if its server does not support them.
    async fn snapshots_of(&self, volume: &Arc<Volume>) -> Result<Option<Arc<[Snapshot]>>> {
        let Some(home) = self.home_of_snapshots(volume).await? else { return Ok(None) };
        let now = self.now();
        let age = self.limits.snapshots_max_age.as_nanos() as u64;
        if let Some(known) = volume.snapshots(afs_rpc::Instant(now.as_nanos().saturating_sub(age))) {
            return Ok(known.list);
        }
        let list = match self.call(&home, fs::ListSnapshots { volume: home.id }).await {
            Ok(answered) => Some(names::usable_snapshots(answered.value.snapshots.into_vec())),
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => None,
            Err(error) if error.kind == ErrorKind::ServerUnreachable => {
                // As for other cached data, the known list stays readable.
                return volume.snapshots(afs_rpc::Instant::ZERO).map(|known| known.list).ok_or(error);
            }
            Err(error) => return Err(error),
        };
        volume.set_snapshots(Some(KnownSnapshots { list: list.clone(), asked: now }));
        Ok(list)
    }

    /// The volume beside which the snapshots are: the read-write volume. Backups and snapshots have none.
    async fn home_of_snapshots(&self, volume: &Arc<Volume>) -> Result<Option<Arc<Volume>>> {
        match (volume.kind, volume.group().volume(VolumeKind::ReadWrite)) {
            (VolumeKind::Backup, _) | (VolumeKind::ReadOnly, None) => Ok(None),
            (VolumeKind::ReadWrite, _) => Ok(Some(volume.clone())),
            (VolumeKind::ReadOnly, Some(id)) => {
                let group = volume.group();
                self.learn_volume(volume.cell, &group, id, VolumeKind::ReadWrite).await.map(Some)
            }
        }
    }

    pub(super) async fn getattr_of_snapshots(
        &self,
        node: NodeId,
        cell: CellIndex,
        volume: VolumeId,
    ) -> Result<Attr> {
        self.kernel.note_unpromised();
        let volume = self.volume(cell, volume).await?;
        self.snapshots_of(&volume).await?;
        Ok(self.snapshots_attr(node, cell, volume.id))
    }

    /// Attributes of the directory; its time is that of the newest snapshot.
    pub(super) fn snapshots_attr(&self, node: NodeId, cell: CellIndex, volume: VolumeId) -> Attr {
        let volume = self.location.volumes().get(cell, volume);
        let known = volume.and_then(|volume| volume.snapshots(afs_rpc::Instant::ZERO));
        let list = known.and_then(|known| known.list);
        let list = list.as_deref().unwrap_or_default();
        let newest = list.iter().map(|snapshot| snapshot.created).max().unwrap_or(UnixSeconds(0));
        let mut attr = self.cells_attr();
        attr.node = node;
        attr.mode = Mode(0o555);
        attr.nlink = 2 + list.len() as u32;
        (attr.mtime, attr.ctime) = (newest.into(), newest.into());
        attr.data_version = DataVersion(0);
        attr.is_public = false;
        attr
    }

    /// Lists the snapshots in order of creation.
    pub(super) async fn list_snapshots(
        &self,
        node: NodeId,
        (cell, volume): (CellIndex, VolumeId),
        offset: u64,
        max: usize,
    ) -> Result<Vec<DirEntry>> {
        self.kernel.note_unpromised();
        let root = |volume| self.kernel.nodes().id(NodeTarget::Object(Key::new(cell, Fid::root(volume))));
        let snapshots = self.visible_snapshots(cell, volume).await?;
        Ok(names::list_snapshots(&snapshots, (node, root(volume)), root, offset, max))
    }
}
