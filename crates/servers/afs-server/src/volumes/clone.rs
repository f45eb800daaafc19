//! Volume service calls that create and update clones.

use std::sync::Arc;

use afs_rpc::Table;
use afs_volume::{CloneSpec, VolumeHeader};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{VolumeId, VolumeKind, VolumeName};
use afs_wire::rpc::Nothing;
use afs_wire::vol;

use super::work::Work;
use super::{VolumeServer, errno, new_name};
use crate::guard::administrators;
use crate::volume_states::{Site, is_published};

type Server = Arc<VolumeServer>;

pub(super) fn add(table: Table<VolumeServer>) -> Table<VolumeServer> {
    let table =
        administrators(
            table,
            |server: Server, call: vol::Clone| async move { server.clone_volume(&call).await },
        );
    let table = administrators(table, |server: Server, call: vol::ReClone| async move {
        let work = server.enter(call.transaction, "ReClone")?;
        server.reclone(&work, call.clone).await
    });
    administrators(
        table,
        |server: Server, call: vol::ConvertRoToRw| async move { server.convert(&call).await },
    )
}

impl VolumeServer {
    async fn clone_volume(self: &Arc<Self>, call: &vol::Clone) -> Result<vol::CloneReply, AbortCode> {
        let (kind, name) = (call.kind.check().ok_or(errno(Errno::EINVAL))?, new_name(&call.name)?);
        if call.volume.0 == 0 {
            return Err(errno(Errno::EINVAL));
        }
        let work = self.enter(call.transaction, "Clone")?;
        // A read-write clone of a read-write volume is a copy, which writers must not disturb.
        let source = if kind == VolumeKind::ReadWrite { work.volume_to_change()? } else { work.volume()? };
        let header = source.header();
        if !header.online || !is_published(&header) {
            return Err(AbortCode::VOFFLINE);
        }
        if call.purge.0 != 0 {
            self.check_kin(&work, call.purge)?;
            if call.purge == call.volume {
                self.reclone(&work, call.volume).await?;
                return Ok(vol::CloneReply { volume: call.volume });
            }
        }
        let site = Site { volume: call.volume, ..work.transaction().site() };
        let _hidden = self.enter_hidden(site, "Clone")?;
        let spec = CloneSpec { id: call.volume, name, kind, snapshot: is_snapshot(&header, kind, call) };
        let cloned = work.store()?.clone_volume(work.id(), spec).await;
        cloned.map_err(|error| self.code(call.volume, &error))?;
        if call.purge.0 != 0 {
            self.erase(Site { volume: call.purge, ..site }).await?;
        }
        self.announce_change(call.volume);
        Ok(vol::CloneReply { volume: call.volume })
    }

    /// Replaces the content of a clone by the state of the transaction's volume; the clone is on line
    /// afterwards.
    async fn reclone(self: &Arc<Self>, work: &Work, clone: VolumeId) -> Result<Nothing, AbortCode> {
        let source = work.volume()?.header();
        if !source.online || !is_published(&source) {
            return Err(AbortCode::VOFFLINE);
        }
        self.check_kin(work, clone)?;
        // The content that clients read switches from old to new at once, so the clone serves all the time.
        let _within = self.enter_serving(Site { volume: clone, ..work.transaction().site() }, "ReClone")?;
        let recloned = work.store()?.reclone_volume(work.id(), clone).await;
        recloned.map_err(|error| self.code(clone, &error))?;
        self.announce_change(clone);
        Ok(())
    }

    /// A volume that is a clone of the same group, on the same partition.
    fn check_kin(&self, work: &Work, clone: VolumeId) -> Result<(), AbortCode> {
        let clone = work.store()?.volume(clone).ok_or(errno(Errno::EXDEV))?.header();
        if clone.parent != work.volume()?.header().parent {
            return Err(errno(Errno::EXDEV));
        }
        if clone.is_writable() { Err(errno(Errno::EINVAL)) } else { Ok(()) }
    }

    /// Turns a read-only volume into the read-write volume of its group.
    async fn convert(self: &Arc<Self>, call: &vol::ConvertRoToRw) -> Result<Nothing, AbortCode> {
        let site = Site { volume: call.volume, partition: self.partition(call.partition)? };
        let store = self.store(site.partition)?;
        let old = store.volume(call.volume).ok_or(errno(Errno::ENODEV))?.header();
        if old.kind != VolumeKind::ReadOnly {
            return Err(errno(Errno::EINVAL));
        }
        let _hidden = self.enter_hidden(site, "ConvertROtoRW")?;
        self.check_alone(site, &old)?;
        let new = Site { volume: old.parent, ..site };
        let _new = self.enter_hidden(new, "ConvertROtoRW")?;
        let name = without_suffix(&old.name);
        let converted = store.convert_to_read_write(call.volume, old.parent, name).await;
        converted.map_err(|error| self.code(call.volume, &error))?;
        self.announce_change(call.volume);
        Ok(())
    }

    /// Checks that no other volume of the group is where the read-write volume is to appear.
    fn check_alone(&self, site: Site, old: &VolumeHeader) -> Result<(), AbortCode> {
        if self.partitions.volume(old.parent).is_some() {
            return Err(errno(Errno::EXDEV));
        }
        let kin = |other: &VolumeHeader| other.parent == old.parent && other.id != site.volume;
        let here = self.store(site.partition)?.volumes();
        if here.iter().any(|volume| kin(&volume.header())) { Err(AbortCode::VVOLEXISTS) } else { Ok(()) }
    }
}

/// Whether a clone is a named snapshot: a backup volume whose name is the volume's with a further suffix,
/// beside the one backup that every group may have.
fn is_snapshot(source: &VolumeHeader, kind: VolumeKind, call: &vol::Clone) -> bool {
    let rest = std::str::from_utf8(&call.name).ok().and_then(|name| name.strip_prefix(source.name.as_str()));
    let word = rest.and_then(|rest| rest.strip_prefix('.'));
    kind == VolumeKind::Backup
        && word.is_some_and(|word| !word.is_empty() && !word.contains('.') && !RESERVED.contains(&word))
}

/// Suffixes with a meaning of their own, or given by `vos clone` by default.
const RESERVED: [&str; 3] = ["backup", "readonly", "clone"];

fn without_suffix(name: &VolumeName) -> VolumeName {
    let base = name.as_str().strip_suffix(".readonly").unwrap_or(name.as_str());
    VolumeName::new(base).unwrap_or_else(|_| name.clone())
}
