//! `vos clone`: a clone beside a volume, without an entry.

use afs_wire::ids::{VolumeId, VolumeKind};
use afs_wire::vol::VolumeFlags;

use crate::calls::Attach;
use crate::error::AdminResult;
use crate::{Admin, Place};

/// What a clone shall be.
#[derive(Clone, Debug)]
pub struct CloneOptions {
    /// Name or number of the volume.
    pub volume: String,
    /// Where it is; `None` is where the VLDB says that the read-write volume is.
    pub place: Option<Place>,
    /// Name of the clone; `None` is the volume's with `.clone` behind it.
    pub name: Option<String>,
    /// Number of the clone; `None` is the next free one.
    pub id: Option<VolumeId>,
    /// Its kind.
    pub kind: VolumeKind,
    /// Leave it off line.
    pub offline: bool,
}

impl Admin {
    /// Makes a clone that the location database knows nothing of. Answers its number and place. An interrupted one removes
    /// itself: until it is published its server keeps it for ten minutes only.
    ///
    /// # Errors
    /// No such volume, a number that is in use, or a server that does not do it.
    pub async fn clone_volume(&self, options: CloneOptions) -> AdminResult<(VolumeId, Place)> {
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
