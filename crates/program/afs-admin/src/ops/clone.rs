//! `vos clone`: creates a clone beside a volume, without an entry.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vol::VolumeFlags;

use crate::calls::Attach;
use crate::error::AdminResult;
use crate::{Admin, ServerPartition};

/// Parameters of a clone.
#[derive(Clone, Debug)]
pub struct CloneOptions {
    /// Name or id of the volume.
    pub volume: String,
    /// Its site; `None` is that of the read-write volume in the VLDB.
    pub place: Option<ServerPartition>,
    /// Name of the clone; `None` is the volume's with `.clone` appended.
    pub name: Option<String>,
    /// Id of the clone; `None` is the next free one.
    pub id: Option<VolumeId>,
    /// Its kind.
    pub kind: VolumeKind,
    /// Leave it off line.
    pub offline: bool,
}

impl Admin {
    /// Creates a clone that is not in the location database. Returns its id and site. An interrupted one is
    /// deleted by itself: until it is published its server keeps it for ten minutes only.
    ///
    /// # Errors
    /// No such volume, an id that is in use, or a server that fails.
    pub async fn clone_volume(&self, options: CloneOptions) -> AdminResult<(VolumeId, ServerPartition)> {
        let doing = format!("Could not clone volume {}", options.volume);
        let group = self.group(&options.volume).await?;
        let place = match options.place {
            Some(place) => place,
            None => self.read_write(&doing, &group.name()).await?.1,
        };
        let id = match options.id {
            Some(id) => id,
            None => self.new_id().await?,
        };
        let name = options.name.unwrap_or_else(|| format!("{}.clone", group.name()));
        let source = self.take_existing(place, group.wanted(), Attach::BUSY).await?;
        let cloned = source.clone_as(id, &name, options.kind).await;
        source.end_after(cloned).await?;
        let held = self.take_existing(place, id, Attach::OFFLINE).await?;
        let state = if options.offline { VolumeFlags::OUT_OF_SERVICE } else { VolumeFlags(0) };
        let published = held.set_flags(state).await;
        held.end_after(published).await?;
        Ok((id, place))
    }
}
