//! Fence of a read-write volume that another site has by the location database: off line, with the reason in its header, so
//! that a restart forgets neither. Clients are sent to look for the other one.

use afs_wire::error::AbortCode;
use afs_wire::ids::{PartitionId, VolumeId};

use super::VolumeServer;
use crate::volume_states::{FENCED, Site, is_fenced, is_published};

/// A read-write volume of this server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ReadWriteVolume {
    /// The volume.
    pub volume: VolumeId,
    /// The partition that it is on.
    pub partition: PartitionId,
    /// Whether it is fenced.
    pub fenced: bool,
}

impl VolumeServer {
    /// The read-write volumes that are published here, in service or not.
    #[must_use]
    pub fn read_write_volumes(&self) -> Vec<ReadWriteVolume> {
        let mut found = Vec::new();
        for (partition, store) in self.partitions.iter() {
            let headers = store.volumes().into_iter().map(|volume| volume.header());
            let held = headers.filter(|header| header.is_writable() && is_published(header));
            found.extend(held.map(|header| ReadWriteVolume {
                volume: header.id,
                partition,
                fenced: is_fenced(&header),
            }));
        }
        found
    }

    /// Takes a volume out of service, durably: `elsewhere` has it. What is in it stays.
    ///
    /// # Errors
    /// There is no such volume, or the disk refuses.
    pub async fn fence(&self, held: ReadWriteVolume, elsewhere: &str) -> Result<(), AbortCode> {
        let message = format!("{FENCED}the read-write volume is on {elsewhere}");
        let out = self.edit(site(held), move |tx| {
            let header = tx.edit_header();
            (header.online, header.offline_message) = (false, message);
        });
        out.await?;
        // Promises are broken and capabilities revoked at once; changes under leases are refused from now on.
        self.announce_change(held.volume);
        drop(self.states.recall_leases(held.volume).await);
        Ok(())
    }

    /// Puts a fenced volume into service again.
    ///
    /// # Errors
    /// As [`VolumeServer::fence`].
    pub async fn lift_fence(&self, held: ReadWriteVolume) -> Result<(), AbortCode> {
        let back = self.edit(site(held), |tx| {
            if is_fenced(tx.header()) {
                let header = tx.edit_header();
                (header.online, header.offline_message) = (true, String::new());
            }
        });
        back.await?;
        self.announce_change(held.volume);
        Ok(())
    }
}

fn site(held: ReadWriteVolume) -> Site {
    Site { volume: held.volume, partition: held.partition }
}
