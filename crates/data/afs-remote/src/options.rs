//! Options of a remote drive: name, address, keys, and how long it is waited for.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::StoreNumber;
use afs_datapath::session::{Patience, Security};

use crate::keys::DriveKeys;

/// Chunks of a segment begin before this offset. Both ends rely on it: with the least length that a chunk takes it bounds the chunks
/// of a segment.
pub(crate) const SEGMENT_BYTES: u64 = 1 << 30;

/// How a file server reaches one store of a drive on another host.
#[derive(Clone)]
pub struct RemoteOptions {
    /// Its name at this host, for messages and the log.
    pub name: Arc<str>,
    /// Where it listens.
    pub address: SocketAddr,
    /// How the connection is protected: outside of tests by TLS, with the fingerprint of the drive's key.
    pub security: Security,
    /// The keys by which its capabilities are sealed.
    pub keys: DriveKeys,
    /// The store on it.
    pub store: StoreNumber,
    /// How long operations wait for a drive that is away, and try again. Default 20 s: longer than a connection
    /// is silent before it is given up, so that a silent one is followed by another attempt. The time counts from
    /// the beginning of the first operation to which the drive did not reply: once it has been away for so long, each operation
    /// makes one attempt.
    pub wait: Duration,
    /// How long a connection waits for its peer.
    pub patience: Patience,
}

impl RemoteOptions {
    /// Options with the usual times: a drive that is silent is given up after 15 s, one that does not finish a request
    /// after 60 s.
    #[must_use]
    pub fn new(
        name: &str,
        address: SocketAddr,
        security: Security,
        keys: impl Into<DriveKeys>,
        store: StoreNumber,
    ) -> Self {
        let patience = Patience {
            handshake: Duration::from_secs(5),
            alive: Duration::from_secs(5),
            silence: Duration::from_secs(15),
            stall: Duration::from_secs(60),
            ..Patience::default()
        };
        let (name, keys) = (name.into(), keys.into());
        Self { name, address, security, keys, store, wait: Duration::from_secs(20), patience }
    }
}

impl fmt::Debug for RemoteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RemoteOptions");
        shown.field("name", &self.name).field("address", &self.address).field("store", &self.store);
        shown.finish_non_exhaustive()
    }
}
