//! Clone: freezes an epoch; nothing is copied. Dates: `docs/protocol/volumes.md` "3. Clones".

use std::sync::Arc;

use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind, VolumeName};

use super::{Group, Members, epochs};
use crate::error::VolumeError;
use crate::header::VolumeHeader;
use crate::location::Location;
use crate::spec::CloneSpec;
use crate::store::VolumeStore;
use crate::volume::Volume;

impl VolumeStore {
    /// Creates a clone of a volume's present state, at a cost independent of the volume's size. It is offline
    /// and marked [`destroy`](VolumeHeader::destroy) until its creator publishes it.
    ///
    /// For a read-write volume the present epoch freezes; for another volume the clone shares its epoch. A
    /// read-write clone copies all data in bounded steps if the source is itself read-write (the caller keeps
    /// its writers out meanwhile) or is not its group's newest state.
    ///
    /// # Errors
    /// `Busy` while a restore of the source is in progress; `VolumeExists` if the id is taken; `Invalid` for
    /// an id of 0.
    pub async fn clone_volume(&self, source: VolumeId, spec: CloneSpec) -> Result<Arc<Volume>, VolumeError> {
        if spec.id.0 == 0 {
            return Err(VolumeError::Invalid);
        }
        if spec.kind == VolumeKind::ReadWrite {
            return self.clone_read_write(source, spec).await;
        }
        self.delete_leftovers(source).await?;
        let header = self
            .change_members(move |members, now| {
                if members.exists(spec.id)? {
                    return Err(VolumeError::VolumeExists);
                }
                let location = members.freeze(source)?;
                let header = members.header(source)?;
                let date = later(now, [&header]);
                let header = clone_header(header, location, &spec, date);
                members.note_clone(source, &header)?;
                members.put(header.clone());
                Ok(header)
            })
            .await?;
        Ok(self.show_new(header))
    }

    /// Replaces the content of a clone by the present state of `source`, at a cost independent of their
    /// sizes; whatever only its old state referenced is deleted in the background. The clone is online
    /// afterwards.
    ///
    /// # Errors
    /// `Busy` while a restore of either is in progress; `Invalid` if `clone` is read-write or has another
    /// read-write volume.
    pub async fn reclone_volume(&self, source: VolumeId, clone: VolumeId) -> Result<(), VolumeError> {
        self.delete_leftovers(source).await?;
        self.change_members(move |members, now| {
            let before = members.header(clone)?;
            let parent = members.header(source)?.parent;
            if before.kind == VolumeKind::ReadWrite || before.parent != parent || source == clone {
                return Err(VolumeError::Invalid);
            }
            members.check_not_staged(&before)?;
            let location = members.freeze(source)?;
            let header = members.header(source)?;
            let date = later(now, [&header, &before]);
            let header = recloned_header(&before, header, location, date);
            members.note_clone(source, &header)?;
            members.put(header);
            members.release(Location::of(&before))
        })
        .await
    }
}

impl Members<'_, '_> {
    /// Adds a reference to the present epoch of a volume; its writer continues in the next epoch.
    fn freeze(&mut self, source: VolumeId) -> Result<Location, VolumeError> {
        let mut header = self.header(source)?;
        let location = Location::of(&header);
        if header.is_writable() {
            self.check_not_staged(&header)?;
        }
        epochs::hold(self.txn, location)?;
        if !header.is_writable() {
            return Ok(location);
        }
        if epochs::newest(self.txn, location.group)? != Some(location.epoch) {
            return Err(VolumeError::Busy);
        }
        let mut group = Group::load(self.txn, location.group)?;
        header.epoch = group.take_epoch()?;
        header.newest_clone = Some(location.epoch);
        group.save(self.txn, location.group);
        // The clone takes over the writer's reference.
        epochs::release(self.txn, location)?;
        epochs::hold(self.txn, Location::of(&header))?;
        self.put_frozen(header);
        Ok(location)
    }

    /// Records the clone in the source's header.
    fn note_clone(&mut self, source: VolumeId, clone: &VolumeHeader) -> Result<(), VolumeError> {
        let mut header = self.header(source)?;
        header.clone_date = clone.creation_date;
        match clone.kind {
            _ if clone.snapshot || !header.is_writable() => {}
            VolumeKind::ReadOnly => header.read_only = clone.id,
            _ => (header.backup, header.backup_date) = (clone.id, clone.creation_date),
        }
        self.put(header);
        Ok(())
    }
}

/// The creation time of a clone: the present, or the second after that of its source, of the source's last clone, or of what it
/// replaces. Clients know a new state by another time, however soon it follows the one before.
fn later<'a>(now: UnixSeconds, others: impl IntoIterator<Item = &'a VolumeHeader>) -> UnixSeconds {
    let dates = others.into_iter().flat_map(|header| [header.creation_date, header.clone_date]);
    let last = dates.max().unwrap_or_default();
    UnixSeconds(now.0.max(last.0.saturating_add(1)))
}

/// The header of a clone: its source's, except for the fields of its own.
fn clone_header(
    source: VolumeHeader,
    location: Location,
    spec: &CloneSpec,
    now: UnixSeconds,
) -> VolumeHeader {
    let mut header = VolumeHeader {
        id: spec.id,
        name: spec.name.clone(),
        kind: spec.kind,
        snapshot: spec.snapshot,
        creation_date: now,
        copy_date: now,
        online: false,
        destroy: true,
        offline_message: String::new(),
        group: location.group,
        epoch: location.epoch,
        newest_clone: None,
        ..source
    };
    note_itself(&mut header, now);
    header
}

fn recloned_header(
    before: &VolumeHeader,
    source: VolumeHeader,
    location: Location,
    now: UnixSeconds,
) -> VolumeHeader {
    let name = recloned_name(before, &source);
    let mut header = VolumeHeader {
        id: before.id,
        name,
        kind: before.kind,
        snapshot: before.snapshot,
        creation_date: now,
        copy_date: before.copy_date,
        access_date: before.access_date,
        day_use: before.day_use,
        day_use_date: before.day_use_date,
        week_use: before.week_use,
        online: true,
        destroy: false,
        offline_message: before.offline_message.clone(),
        restored_from: before.restored_from,
        group: location.group,
        epoch: location.epoch,
        newest_clone: None,
        ..source
    };
    note_itself(&mut header, now);
    header
}

fn note_itself(header: &mut VolumeHeader, now: UnixSeconds) {
    match header.kind {
        VolumeKind::ReadOnly => header.read_only = header.id,
        _ => {
            header.backup_date = now;
            if !header.snapshot {
                header.backup = header.id;
            }
        }
    }
}

/// The source's name with the suffix of the clone's kind; a snapshot keeps its own name.
fn recloned_name(before: &VolumeHeader, source: &VolumeHeader) -> VolumeName {
    let suffix = before.kind.suffix();
    let base = source.name.as_str();
    let base = [".readonly", ".backup"].iter().find_map(|suffix| base.strip_suffix(suffix)).unwrap_or(base);
    match VolumeName::new(&format!("{base}{suffix}")) {
        Ok(name) if !before.snapshot && name.as_str().len() <= VolumeName::HEADER_MAX => name,
        _ => before.name.clone(),
    }
}
