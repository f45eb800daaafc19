//! Fencing of read-write volumes: a file server looks where the location database has them, and takes out of service what another
//! site has.
//!
//! The entry is what says who has a volume. A conversion, a move or a restore changes it, perhaps while this server is down or cut
//! off. It looks when it starts, when it reaches the database again, after changes of the databases, and once a minute.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::{BoxFuture, EnvExt};
use afs_wire::ids::{PartitionId, PartitionNumber, VolumeId, VolumeKind};
use afs_wire::vl::EntryFlags;

use crate::error::{AdminError, AdminResult};
use crate::group::home;
use crate::ops::EntryFilter;
use crate::{Admin, ServerPartition};

/// Time between two looks when nothing is heard of changes.
const INTERVAL: Duration = Duration::from_secs(60);
/// Time between two looks when changes are heard of, or the database is not reached.
const PAUSE: Duration = Duration::from_secs(3);
/// A volume that seems to be elsewhere is looked up once more after this time: a database that was asked may be a copy that lags.
const DOUBT: Duration = Duration::from_secs(2);
/// Longest wait for a database at the first look, during which changes of volumes wait.
const FIRST_MAX: Duration = Duration::from_secs(3);

/// A read-write volume of the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HeldVolume {
    /// The volume.
    pub volume: VolumeId,
    /// The partition that it is on.
    pub partition: PartitionId,
    /// Whether it is out of service because another site has it.
    pub fenced: bool,
}

/// The read-write volumes of a file server.
pub trait HeldVolumes: Send + Sync + 'static {
    /// All that are published, in service or not.
    fn held(&self) -> Vec<HeldVolume>;

    /// Takes one out of service: another site has it.
    fn fence(self: Arc<Self>, volume: HeldVolume, elsewhere: ServerPartition) -> BoxFuture<'static, ()>;

    /// Puts a fenced one into service again.
    fn lift(self: Arc<Self>, volume: HeldVolume) -> BoxFuture<'static, ()>;

    /// The volumes were compared once, or that is not possible now.
    fn settled(&self);

    /// Ready when the databases may have changed.
    fn changed(&self) -> BoxFuture<'static, ()>;
}

/// The task. One in each file server's process.
pub struct Fencing {
    admin: Admin,
    server: Ipv4Addr,
    volumes: Weak<dyn HeldVolumes>,
}

impl Fencing {
    /// For the volumes of `server`.
    #[must_use]
    pub fn new(admin: Admin, server: Ipv4Addr, volumes: Weak<dyn HeldVolumes>) -> Self {
        Self { admin, server, volumes }
    }

    /// Looks until the volumes are dropped. To be spawned.
    pub async fn run(self) {
        let env = self.admin.env().clone();
        let mut limit = Some(FIRST_MAX);
        while let Some(volumes) = self.volumes.upgrade() {
            let changed = volumes.changed();
            let looked = self.look_within(&volumes, limit).await.is_ok();
            if limit.take().is_some() {
                volumes.settled();
            }
            drop(volumes);
            if looked {
                select(changed, env.sleep(INTERVAL)).await;
            }
            env.sleep(PAUSE).await;
        }
    }

    /// Compares all volumes once.
    ///
    /// # Errors
    /// No location server replies.
    pub async fn look(&self, volumes: &Arc<dyn HeldVolumes>) -> AdminResult {
        self.look_within(volumes, None).await
    }

    /// The limit is for the replies of the databases: what they have elsewhere is fenced, however much it is.
    async fn look_within(&self, volumes: &Arc<dyn HeldVolumes>, limit: Option<Duration>) -> AdminResult {
        let own = self.own_addresses();
        let own = match limit {
            Some(limit) => match select(std::pin::pin!(own), self.admin.env().sleep(limit)).await {
                Either::Left(own) => own?,
                Either::Right(()) => {
                    return Err(AdminError::failed("volumes of this server", "no database replies"));
                }
            },
            None => own.await?,
        };
        let doubted = self.doubted(volumes, &own).await?;
        if doubted.is_empty() {
            return Ok(());
        }
        self.admin.env().sleep(DOUBT).await;
        for held in doubted {
            let Some(elsewhere) = self.elsewhere(held, &own).await? else { continue };
            tracing::warn!(volume = %held.volume, %elsewhere, "a read-write volume is taken off line: the location database has it there");
            volumes.clone().fence(held, elsewhere).await;
        }
        Ok(())
    }

    /// The volumes in service that another site seems to have. A fenced one that is here again is lifted.
    async fn doubted(
        &self,
        volumes: &Arc<dyn HeldVolumes>,
        own: &[Ipv4Addr],
    ) -> AdminResult<Vec<HeldVolume>> {
        let filter = EntryFilter { server: Some(self.server), ..EntryFilter::default() };
        let entries = self.admin.entries(&filter).await?;
        let here: BTreeSet<(VolumeId, PartitionNumber)> = entries
            .iter()
            .filter_map(|entry| Some((entry.id(VolumeKind::ReadWrite), home(entry)?)))
            .filter(|(_, home)| own.contains(&home.server))
            .map(|(volume, home)| (volume, home.partition))
            .collect();
        let mut doubted = Vec::new();
        for held in volumes.held() {
            match (here.contains(&(held.volume, held.partition.into())), held.fenced) {
                (true, true) => volumes.clone().lift(held).await,
                (false, false) if self.elsewhere(held, own).await?.is_some() => doubted.push(held),
                _ => {}
            }
        }
        Ok(doubted)
    }

    /// The other site that has a volume. An entry that an operation has locked says nothing.
    async fn elsewhere(&self, held: HeldVolume, own: &[Ipv4Addr]) -> AdminResult<Option<ServerPartition>> {
        let Some(entry) = self.admin.entry(held.volume).await? else { return Ok(None) };
        let exists = entry.flags.contains(EntryFlags::RW_EXISTS);
        if !exists || Admin::check_unlocked(&entry).is_err() {
            return Ok(None);
        }
        let is_here =
            |home: &ServerPartition| own.contains(&home.server) && home.partition == held.partition.into();
        Ok(home(&entry).filter(|home| !is_here(home)))
    }

    async fn own_addresses(&self) -> AdminResult<Vec<Ipv4Addr>> {
        let known = self.admin.known_server(self.server).await?;
        Ok(known.map_or_else(|| vec![self.server], |known| known.addresses))
    }
}
