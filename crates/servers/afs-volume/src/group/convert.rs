//! Conversion of a read-only or backup volume to a read-write volume. Source: `docs/protocol/volserver.md`
//! "5. Call semantics", Clone and ConvertROtoRWvolume.

use std::sync::Arc;

use afs_wire::ids::{UnixSeconds, VnodeId, VolumeId, VolumeKind, VolumeName};

use super::{Group, Members, epochs};
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::location::Location;
use crate::spec::{CloneSpec, VolumeSpec};
use crate::staging::RestoredHeader;
use crate::store::VolumeStore;
use crate::volume::Volume;

impl VolumeStore {
    /// Turns a read-only or backup volume into the read-write volume of its group, with another id and name:
    /// `from` is gone afterwards. Immediate if `from` is its group's newest state; else all data is copied,
    /// in bounded steps, and a crash during the copy leaves `from` unchanged.
    ///
    /// # Errors
    /// `Invalid` if `from` is read-write; `VolumeExists` if the id is taken; `Busy` while `from` is being
    /// restored.
    pub async fn convert_to_read_write(
        &self,
        from: VolumeId,
        id: VolumeId,
        name: VolumeName,
    ) -> Result<Arc<Volume>, VolumeError> {
        let spec = CloneSpec { id, name, kind: VolumeKind::ReadWrite, snapshot: false };
        let volume = self.read_write_of(from, spec, true).await?;
        self.forget(from);
        Ok(volume)
    }

    /// Creates an independent read-write volume with the state of another, which stays.
    pub(super) async fn clone_read_write(
        &self,
        source: VolumeId,
        spec: CloneSpec,
    ) -> Result<Arc<Volume>, VolumeError> {
        self.read_write_of(source, spec, false).await
    }

    async fn read_write_of(
        &self,
        from: VolumeId,
        spec: CloneSpec,
        instead: bool,
    ) -> Result<Arc<Volume>, VolumeError> {
        loop {
            let given = spec.clone();
            let made =
                self.change_members(move |members, now| members.at_once(from, &given, instead, now)).await?;
            match made {
                Made::Header(header) => return Ok(self.show_new(*header)),
                Made::Leftovers(group) => self.store.delete_leftovers_step(group).await?,
                Made::ByCopy => return self.copy_read_write(from, spec, instead).await,
            }
        }
    }

    async fn copy_read_write(
        &self,
        from: VolumeId,
        spec: CloneSpec,
        instead: bool,
    ) -> Result<Arc<Volume>, VolumeError> {
        let volume = self.create_hidden(&spec).await?;
        match self.fill(from, &volume, &spec, instead).await {
            Ok(()) => Ok(volume),
            Err(error) => {
                // The copy is marked for deletion in any case.
                let _ = self.delete_volume(spec.id).await;
                Err(error)
            }
        }
    }

    /// Creates an empty volume that is removed by the clean-up after a crash.
    async fn create_hidden(&self, spec: &CloneSpec) -> Result<Arc<Volume>, VolumeError> {
        let (id, name) = (spec.id, spec.name.clone());
        let owner = afs_wire::ids::ViceId::ADMINISTRATORS;
        let (kind, parent) = (VolumeKind::ReadWrite, id);
        let empty = VolumeSpec { id, name, kind, parent, owner, max_quota: 0, root: None };
        self.create_marked(empty).await
    }

    async fn fill(
        &self,
        from: VolumeId,
        volume: &Arc<Volume>,
        spec: &CloneSpec,
        instead: bool,
    ) -> Result<(), VolumeError> {
        let source = self.volume(from).ok_or(VolumeError::NoVolume)?;
        let location = Location::of(&source.header());
        let mut restore = volume.begin_restore(true).await?;
        for directories in [true, false] {
            let mut after = VnodeId(0);
            loop {
                let records = source.vnodes_after(directories, after, VNODES_PER_STEP)?;
                let Some(last) = records.last() else { break };
                after = last.vnode;
                for record in records {
                    restore.copy(&source, record).await?;
                }
            }
        }
        restore.commit(RestoredHeader::default()).await?;
        self.become_copy((from, location), spec.clone(), instead).await
    }

    /// Gives the copy the header that an immediate conversion would have made.
    async fn become_copy(
        &self,
        (from, location): (VolumeId, Location),
        spec: CloneSpec,
        instead: bool,
    ) -> Result<(), VolumeError> {
        self.change_members(move |members, now| {
            let source = members.header(from)?;
            if Location::of(&source) != location {
                return Err(VolumeError::Busy);
            }
            let copy = members.header(spec.id)?;
            let mut header = read_write_header(source.clone(), &spec, instead, now);
            (header.group, header.epoch, header.newest_clone) = (copy.group, copy.epoch, copy.newest_clone);
            (header.files, header.directories) = (copy.files, copy.directories);
            (header.blocks_used, header.file_count) = (copy.blocks_used, copy.file_count);
            (header.next_content, header.loose_numbers) = (copy.next_content, copy.loose_numbers);
            members.put(header);
            if instead { members.remove(from) } else { Ok(()) }
        })
        .await
    }
}

enum Made {
    Header(Box<VolumeHeader>),
    /// The group's newest state is being deleted.
    Leftovers(crate::ids::GroupId),
    ByCopy,
}

impl Members<'_, '_> {
    /// Creates the read-write volume if nothing has to be copied for it.
    fn at_once(
        &mut self,
        from: VolumeId,
        spec: &CloneSpec,
        instead: bool,
        now: UnixSeconds,
    ) -> Result<Made, VolumeError> {
        let source = self.header(from)?;
        if source.is_writable() && instead || spec.id.0 == 0 {
            return Err(VolumeError::Invalid);
        }
        self.check_not_staged(&source)?;
        if self.exists(spec.id)? {
            return Err(VolumeError::VolumeExists);
        }
        if source.is_writable() {
            return Ok(Made::ByCopy);
        }
        let location = Location::of(&source);
        let mut group = Group::load(self.txn, location.group)?;
        if group.writer.is_some() {
            return Ok(Made::ByCopy);
        }
        if epochs::newest(self.txn, location.group)? != Some(location.epoch) {
            return self.newer_than(location);
        }
        let mut header = read_write_header(source, spec, instead, now);
        header.epoch = group.take_epoch()?;
        group.writer = Some(spec.id);
        group.save(self.txn, location.group);
        epochs::hold(self.txn, Location::of(&header))?;
        header.newest_clone = Some(location.epoch);
        self.put(header);
        if instead {
            self.remove(from)?;
        }
        Ok(Made::Header(Box::new(self.header(spec.id)?)))
    }

    /// Examines newer states: those being deleted are waited for; those that volumes reference prevent an
    /// immediate conversion.
    fn newer_than(&self, location: Location) -> Result<Made, VolumeError> {
        let newer =
            epochs::all(self.txn, location.group)?.into_iter().filter(|(epoch, _)| *epoch > location.epoch);
        let mut held = newer.filter(|(_, held)| matches!(held, epochs::Held::By(1..)));
        Ok(if held.next().is_some() { Made::ByCopy } else { Made::Leftovers(location.group) })
    }
}

fn read_write_header(
    source: VolumeHeader,
    spec: &CloneSpec,
    instead: bool,
    now: UnixSeconds,
) -> VolumeHeader {
    let mut header = VolumeHeader {
        id: spec.id,
        name: spec.name.clone(),
        kind: VolumeKind::ReadWrite,
        parent: spec.id,
        snapshot: false,
        restored_from: source.id,
        online: instead && source.online,
        destroy: !instead,
        creation_date: if instead { source.copy_date.min(source.creation_date) } else { now },
        clone_date: source.clone_date.max(source.creation_date),
        copy_date: if instead { source.copy_date } else { now },
        // Data that clients have cached of the lost read-write volume must not match objects created from now
        // on.
        next_unique: source.next_unique.checked_add(UNIQUES_SKIPPED).unwrap_or(2),
        ..source
    };
    (header.files.freed, header.directories.freed) = (0, 0);
    match (instead, source.kind) {
        (true, _) => (header.read_only, header.backup) = (source.id, VolumeId(0)),
        (false, VolumeKind::ReadOnly) => header.read_only = source.id,
        (false, VolumeKind::Backup) => header.backup = source.id,
        // The source's clones are not the new volume's.
        (false, VolumeKind::ReadWrite) => (header.read_only, header.backup) = (VolumeId(0), VolumeId(0)),
    }
    header
}

/// Uniquifiers that a read-write volume made from another volume skips.
const UNIQUES_SKIPPED: u32 = 5000;
const VNODES_PER_STEP: usize = 256;
