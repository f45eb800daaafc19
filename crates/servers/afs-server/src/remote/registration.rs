//! Registration of a file server's addresses with the location service of a cell.

use std::net::Ipv4Addr;
use std::time::Duration;

use afs_rpc::{CallError, EnvExt, EnvRef};
use afs_wire::ids::Uuid;
use afs_wire::vl::{Addresses, RegisterAddrs};

use super::DatabaseServers;

/// Time between a failed registration and the next attempt, at first and at most.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The identity and addresses of a file server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registration {
    /// Its permanent name.
    pub uuid: Uuid,
    /// Its addresses: 1 to 15.
    pub addresses: Vec<Ipv4Addr>,
}

impl Registration {
    /// Registers once.
    ///
    /// # Errors
    /// The location servers' refusal, or that none of them replies.
    pub async fn register(&self, servers: &DatabaseServers) -> Result<(), CallError> {
        let addresses = Addresses::first_of(self.addresses.iter().copied());
        servers.call(&RegisterAddrs { uuid: self.uuid, spare: 0, addresses }).await.map(drop)
    }
}

/// Registers as soon as a location server accepts it: until then the volumes of this server cannot be
/// recorded, but those already recorded can be read.
pub async fn keep_registered(env: EnvRef, servers: DatabaseServers, registration: Registration) {
    let mut pause = RETRY_FIRST;
    while let Err(error) = registration.register(&servers).await {
        tracing::warn!(%error, "the location service does not take this server's addresses; trying again");
        env.sleep(pause).await;
        pause = (pause * 2).min(RETRY_MAX);
    }
}
