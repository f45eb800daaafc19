//! What of rustls is used: cipher suites, key exchange, clock.

use std::sync::Arc;
use std::time::Duration;

use afs_env::EnvRef;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use tokio_rustls::rustls::crypto::ring::{default_provider, kx_group};
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::time_provider::TimeProvider;

/// ring, with the cipher suites of TLS 1.3 and one group. Both ends are ours, so that nothing has to be negotiated.
///
/// Its random numbers come from the kernel: rustls takes a generator of static lifetime alone, and ring's key exchange takes none.
/// In the simulator streams are clear.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
            TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    }
}

/// The wall clock of the environment. Nothing depends on it, since there are no certificates.
#[derive(Debug)]
pub(super) struct WallClock(EnvRef);

impl WallClock {
    pub fn new(env: &EnvRef) -> Arc<Self> {
        Arc::new(Self(env.clone()))
    }
}

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.wall().secs)))
    }
}
