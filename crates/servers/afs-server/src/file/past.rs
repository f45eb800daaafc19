//! Rights in the past: what a snapshot, backup or clone shows, it shows to those whom its read-write volume shows it today.
//!
//! An earlier state of a volume keeps the access lists of its day. A caller has the rights that both its own list and the present
//! one of the same directory give (docs/protocol/extensions.md "Rights in the past").

use std::sync::Arc;

use afs_volume::{VnodeRecord, Volume, VolumeError, VolumeHeader};
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::FileKind;
use afs_wire::ids::{Mode, Rights, Uniquifier, ViceId, VnodeId, VolumeKind};
use afs_wire::vol::ClosedPast;

use super::server::FileServer;
use crate::access::{self, Operation};
use crate::subject::Subject;
use crate::volume_states::Served;

/// Most directories above one that are looked at. What is deeper is shown to administrators alone.
const DEPTH_MAX: usize = 1024;

/// What the present says of an object in an earlier state of its volume.
pub(super) enum Past {
    /// The same directory, or the nearest above it that still is, and the volume's owner. An object is shown as far as this shows it.
    Follows(Present),
    /// The past of its directory, or of one above, is closed.
    Closed(Present),
    /// The read-write volume is not at hand: for administrators.
    Alone,
}

/// The attributes of an object today that access depends on.
pub(super) struct Present {
    header: Arc<VolumeHeader>,
    acl: Arc<Acl>,
    owner: ViceId,
    mode: Mode,
}

/// A directory: vnode number and uniquifier.
type Directory = (VnodeId, Uniquifier);

/// Whether a volume is an earlier state of another one. Read-only volumes are not: a release publishes their lists with the rest.
pub(super) fn is_past(header: &VolumeHeader) -> bool {
    match header.kind {
        VolumeKind::ReadWrite => false,
        VolumeKind::ReadOnly => !header.name.as_str().ends_with(VolumeKind::ReadOnly.suffix()),
        VolumeKind::Backup => true,
    }
}

impl Past {
    /// Decides beside the object's own list, which has decided already.
    pub(super) fn check(
        &self,
        subject: &Subject,
        kind: FileKind,
        operation: Operation<'_>,
    ) -> Result<(), AbortCode> {
        match (self, operation) {
            (_, Operation::FetchStatus) if kind == FileKind::Directory => Ok(()),
            (Past::Follows(present), _) => present.check(subject, kind, operation),
            // So that it can be opened again.
            (Past::Closed(_) | Past::Alone, Operation::FetchAcl) if subject.is_administrator() => Ok(()),
            (Past::Alone, _) if subject.is_administrator() => Ok(()),
            _ => Err(Errno::EACCES.to_uae()),
        }
    }

    /// The rights that remain of those by the object's own list; `of` gives those by another object.
    pub(super) fn limit(
        &self,
        subject: &Subject,
        kind: FileKind,
        own: Rights,
        of: impl Fn(&access::Object<'_>) -> Rights,
    ) -> Rights {
        match self {
            Past::Follows(present) => own & of(&present.object(kind)),
            Past::Alone if subject.is_administrator() => own,
            Past::Closed(_) | Past::Alone => Rights::NONE,
        }
    }

    /// The directory as it is today; `None` without a read-write volume.
    pub(super) fn present(&self) -> Option<&Present> {
        match self {
            Past::Follows(present) | Past::Closed(present) => Some(present),
            Past::Alone => None,
        }
    }
}

impl Present {
    /// As today's list and owner decide.
    pub(super) fn check(
        &self,
        subject: &Subject,
        kind: FileKind,
        operation: Operation<'_>,
    ) -> Result<(), AbortCode> {
        Ok(access::check(subject, &self.object(kind), operation)?)
    }

    /// The read-write volume.
    pub(super) fn header(&self) -> &VolumeHeader {
        &self.header
    }

    fn object(&self, kind: FileKind) -> access::Object<'_> {
        access::Object {
            kind,
            owner: self.owner,
            mode: self.mode,
            acl: &self.acl,
            volume_owner: self.header.owner,
        }
    }
}

impl FileServer {
    /// What the present says of an object; `None` for one of a volume that is no earlier state.
    pub(super) async fn past(
        &self,
        served: &Served,
        header: &VolumeHeader,
        record: &Arc<VnodeRecord>,
    ) -> Result<Option<Past>, VolumeError> {
        if !is_past(header) {
            return Ok(None);
        }
        let store = self.partitions.store(served.site.partition);
        let today = store.and_then(|store| store.volume(header.parent));
        let Some(today) = today.filter(|today| today.header().kind == VolumeKind::ReadWrite) else {
            // A read-only volume may be a copy with a name of its own, which never had one here.
            return Ok((header.kind == VolumeKind::Backup).then_some(Past::Alone));
        };
        let now = today.header();
        let own = self.present(&today, &now, record, &[directory_of(record)]).await?;
        if own.is_some() && now.closed_pasts.is_empty() {
            return Ok(own.map(Past::Follows));
        }
        let Some(above) = self.directories_above(&served.volume, record).await? else {
            return Ok(Some(Past::Alone));
        };
        let present = match own {
            Some(present) => Some(present),
            None => self.present(&today, &now, record, &above).await?,
        };
        let Some(present) = present else { return Ok(Some(Past::Alone)) };
        let is_closed = now.closed_pasts.iter().any(|closed| covers(closed, header, &above));
        Ok(Some(if is_closed { Past::Closed(present) } else { Past::Follows(present) }))
    }

    /// The first of some directories that is there today, and the file's owner and mode, as far as it is there too.
    async fn present(
        &self,
        today: &Arc<Volume>,
        header: &Arc<VolumeHeader>,
        record: &Arc<VnodeRecord>,
        directories: &[Directory],
    ) -> Result<Option<Present>, VolumeError> {
        let (header, record, directories) = (header.clone(), record.clone(), directories.to_vec());
        self.read(today, move |today| {
            for (vnode, unique) in &directories {
                let is_same = |found: &Arc<VnodeRecord>| found.unique == *unique && found.is_directory();
                let Some(directory) = today.vnode(*vnode)?.filter(is_same) else { continue };
                let same =
                    |found: &Arc<VnodeRecord>| found.unique == record.unique && found.kind == record.kind;
                let found = today.vnode(record.vnode)?.filter(same).unwrap_or_else(|| record.clone());
                let acl = directory.acl.clone().unwrap_or_default();
                let header = header.clone();
                return Ok(Some(Present { header, acl, owner: found.owner, mode: found.mode }));
            }
            Ok(None)
        })
        .await
    }

    /// The directory of an object and those above it, up to the root, as an earlier state has them; `None` if they are too many.
    async fn directories_above(
        &self,
        volume: &Arc<Volume>,
        record: &Arc<VnodeRecord>,
    ) -> Result<Option<Vec<Directory>>, VolumeError> {
        let first = directory_of(record);
        self.read(volume, move |volume| {
            let mut above = vec![first];
            while let Some((vnode, _)) = above.last().filter(|(vnode, _)| *vnode != VnodeId::ROOT) {
                let Some(directory) = volume.vnode(*vnode)?.filter(|found| found.is_directory()) else {
                    return Err(VolumeError::NoVnode);
                };
                if above.len() == DEPTH_MAX {
                    return Ok(None);
                }
                above.push((directory.parent, directory.parent_unique));
            }
            Ok(Some(above))
        })
        .await
    }
}

fn directory_of(record: &VnodeRecord) -> Directory {
    match record.is_directory() {
        true => (record.vnode, record.unique),
        false => (record.parent, record.parent_unique),
    }
}

/// Whether the past of one of these directories is closed up to the time of this state.
fn covers(closed: &ClosedPast, state: &VolumeHeader, directories: &[Directory]) -> bool {
    closed.until >= state.creation_date && directories.contains(&(closed.vnode, closed.unique))
}
