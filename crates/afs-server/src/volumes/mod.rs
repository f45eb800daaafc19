//! The volume service (docs/protocol volserver.md), as far as volumes can be made, removed, looked at and set: what
//! moves their contents is answered "no such call" (-455).
//!
//! Anybody may look; only administrators may change.

mod change;
mod info;
mod list;
mod partition;
mod transaction;
mod transactions;

use std::sync::{Arc, Weak};
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, Service, Table};
use afs_volume::VolumeError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::ids::{PartitionId, PartitionNumber, UnixSeconds, VolumeId};
use afs_wire::rpc::ServiceId;

use crate::clients::Clients;
use crate::guard::{Guard, Guarded};
use crate::partitions::Partitions;
use crate::server::untranslated;
use crate::volume_states::VolumeStates;
use transactions::Transactions;

/// Time between two looks for transactions that nobody works on any more.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// The volume service over the volume stores of a server.
pub struct VolumeServer {
    env: EnvRef,
    partitions: Partitions,
    states: Arc<VolumeStates>,
    clients: Arc<Clients>,
    guard: Guard,
    transactions: Transactions,
}

impl VolumeServer {
    /// A service over `partitions`. `states` and `clients` are those of the file server beside it, which tells its clients
    /// what happens to volumes.
    pub fn new(
        env: EnvRef,
        partitions: Partitions,
        states: Arc<VolumeStates>,
        clients: Arc<Clients>,
        guard: Guard,
    ) -> Arc<Self> {
        let transactions = Transactions::default();
        let server = Arc::new(VolumeServer { env, partitions, states, clients, guard, transactions });
        server.start_sweeping();
        server
    }

    /// The service, to be offered on port 7005 with [`afs_rpc::Rx::listen`].
    pub fn service(self: &Arc<Self>) -> Arc<dyn Service> {
        let table = Table::new(ServiceId::VOLUME, self.clone());
        let table = partition::add(table);
        let table = list::add(table);
        let table = transaction::add(table);
        Arc::new(change::add(table))
    }

    fn start_sweeping(self: &Arc<Self>) {
        let (env, server) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            loop {
                env.sleep(SWEEP_INTERVAL).await;
                let Some(server) = Weak::upgrade(&server) else { return };
                server.end_idle().await;
            }
        }));
    }

    fn now(&self) -> UnixSeconds {
        UnixSeconds(self.env.wall().secs_u32())
    }

    /// A partition that is there.
    fn partition(&self, number: PartitionNumber) -> Result<PartitionId, AbortCode> {
        let attached = |partition: &PartitionId| self.partitions.store(*partition).is_some();
        number.check().filter(attached).ok_or(AbortCode::VOLSERILLEGAL_PARTITION)
    }

    fn code(&self, volume: VolumeId, error: &VolumeError) -> AbortCode {
        if matches!(error, VolumeError::Damaged { .. } | VolumeError::Index(_) | VolumeError::Drive(_)) {
            tracing::error!(%volume, %error, "a volume cannot be used");
        }
        // Volume tools know Linux numbers and no translated ones.
        untranslated(error.code())
    }
}

fn errno(errno: Errno) -> AbortCode {
    AbortCode(errno.number())
}

impl Guarded for VolumeServer {
    const SERVICE: ServiceId = ServiceId::VOLUME;
    const REFUSAL: AbortCode = AbortCode::VOLSERBAD_ACCESS;

    fn guard(&self) -> &Guard {
        &self.guard
    }
}
