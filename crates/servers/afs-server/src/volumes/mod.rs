//! The volume service (docs/protocol volserver.md): creation, removal, inspection, settings and clones of
//! volumes, and their transfer between servers as streams.
//!
//! Every caller may read; only administrators may change. `SplitVolume` is answered "no such call" (-455).

mod by_path;
mod clone;
mod create;
mod delivery;
mod dump;
mod fence;
mod fetch_part;
mod forward;
mod forward_multiple;
mod info;
mod list;
mod partition;
mod peers;
mod purge;
mod remove;
mod restore;
mod sending;
mod settings;
mod snapshots;
mod transaction;
mod transactions;
mod work;

pub use fence::ReadWriteVolume;
pub use peers::OwnSecurity;
pub(crate) use snapshots::snapshots_of;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, Service, Table};
use afs_volume::{VolumeError, VolumeStore, VolumeTx};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, PartitionNumber, UnixSeconds, VolumeId, VolumeName};
use afs_wire::rpc::{Nothing, ServiceId};

use crate::call_context::untranslated;
use crate::clients::Clients;
use crate::file::FileServer;
use crate::guard::{Guard, Guarded};
use crate::partition_health::PartitionState;
use crate::partitions::Partitions;
use crate::volume_states::{Site, VolumeStates};
use peers::Peers;
use transactions::{Moment, Transactions};

/// Time between sweeps for abandoned transactions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// The volume service over the volume stores of a server.
pub struct VolumeServer {
    env: EnvRef,
    partitions: Partitions,
    states: Arc<VolumeStates>,
    clients: Arc<Clients>,
    guard: Guard,
    transactions: Transactions,
    peers: OnceLock<Peers>,
    /// Has the data path.
    files: OnceLock<Weak<FileServer>>,
}

impl VolumeServer {
    /// A service over `partitions`. `states` and `clients` are those of the file server beside it, which
    /// notifies its clients of changes to volumes. Volumes that an earlier process left unfinished are
    /// removed in the background.
    pub fn new(
        env: EnvRef,
        partitions: Partitions,
        states: Arc<VolumeStates>,
        clients: Arc<Clients>,
        guard: Guard,
    ) -> Arc<Self> {
        let (transactions, peers, files) =
            (Transactions::new(env.random_u64()), OnceLock::new(), OnceLock::new());
        let server =
            Arc::new(VolumeServer { env, partitions, states, clients, guard, transactions, peers, files });
        server.purge_unfinished();
        server.start_sweeping();
        server
    }

    /// The service, for port 7005 ([`afs_rpc::Rx::listen`]).
    pub fn service(self: &Arc<Self>) -> Arc<dyn Service> {
        let table = Table::new(ServiceId::VOLUME, self.clone());
        let table = partition::add(table);
        let table = list::add(table);
        let table = transaction::add(table);
        let table = create::add(table);
        let table = remove::add(table);
        let table = settings::add(table);
        let table = clone::add(table);
        let table = dump::add(table);
        let table = fetch_part::add(table);
        let table = restore::add(table);
        let table = forward::add(table);
        let table = forward_multiple::add(table);
        let table = by_path::add(table);
        Arc::new(snapshots::add(table))
    }

    fn start_sweeping(self: &Arc<Self>) {
        let (env, server) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            loop {
                env.sleep(SWEEP_INTERVAL).await;
                let Some(server) = Weak::upgrade(&server) else { return };
                server.end_idle().await;
                server.keep_uses().await;
            }
        }));
    }

    /// Tells clients that all of a volume has changed: breaks their promises, and revokes their capabilities.
    fn announce_change(&self, volume: VolumeId) {
        self.states.revoke(volume);
        self.clients.break_volume(volume);
        self.clients.break_pasts(volume);
    }

    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    fn moment(&self) -> Moment {
        Moment { wall: self.now(), clock: self.env.now().as_nanos() / 1_000_000_000 }
    }

    /// A partition of this server.
    fn partition(&self, number: PartitionNumber) -> Result<PartitionId, AbortCode> {
        let partition = number.check().ok_or(AbortCode::VOLSERILLEGAL_PARTITION)?;
        self.store(partition).map(|_| partition)
    }

    fn store(&self, partition: PartitionId) -> Result<&VolumeStore, AbortCode> {
        self.partitions.store(partition).ok_or_else(|| match self.partitions.state(partition) {
            PartitionState::Offline(_) => AbortCode::VOFFLINE,
            _ => AbortCode::VOLSERILLEGAL_PARTITION,
        })
    }

    /// Changes the header of a volume.
    async fn edit(
        &self,
        site: Site,
        change: impl FnOnce(&mut VolumeTx<'_, '_>) + Send + 'static,
    ) -> Result<Nothing, AbortCode> {
        let volume = self.store(site.partition)?.volume(site.volume).ok_or(AbortCode::VNOVOL)?;
        let edited = volume.edit(move |tx| {
            change(tx);
            Ok(())
        });
        edited.await.map_err(|error| self.code(site.volume, &error))
    }

    fn code(&self, volume: VolumeId, error: &VolumeError) -> AbortCode {
        if matches!(error, VolumeError::Damaged { .. } | VolumeError::Index(_) | VolumeError::Drive(_)) {
            tracing::error!(%volume, %error, "a volume cannot be used");
            self.partitions.note(volume, error);
        }
        if matches!(error, VolumeError::Sparse { .. }) {
            tracing::warn!(%volume, %error, "a volume is not dumped");
        }
        // Volume tools know Linux error numbers and no translated ones.
        untranslated(error.code())
    }
}

fn errno(errno: Errno) -> AbortCode {
    AbortCode(errno.number())
}

/// A name that fits into a volume's header.
fn new_name(name: &[u8]) -> Result<VolumeName, AbortCode> {
    let bad = AbortCode::VOLSERBADNAME;
    if name.len() > VolumeName::HEADER_MAX {
        return Err(bad);
    }
    VolumeName::from_bytes(name).map_err(|_| bad)
}

impl Guarded for VolumeServer {
    const SERVICE: ServiceId = ServiceId::VOLUME;
    const REFUSAL: AbortCode = AbortCode::VOLSERBAD_ACCESS;

    fn guard(&self) -> &Guard {
        &self.guard
    }
}
