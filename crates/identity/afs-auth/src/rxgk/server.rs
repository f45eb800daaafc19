//! rxgk as a class that a server offers.

use std::fmt;
use std::sync::Arc;

use afs_rpc::{EnvRef, Level};
use afs_rx::{ServerSecurity, ServerSession};

use super::Variant;
use super::session::RxgkSession;
use crate::keys::SharedKeys;
use crate::names::LocalNames;

/// State that the sessions of a server share.
pub(super) struct Offered {
    pub(super) variant: Variant,
    pub(super) keys: SharedKeys,
    pub(super) names: Arc<LocalNames>,
    pub(super) env: EnvRef,
    pub(super) minimum: Level,
}

/// Offers rxgk under one index.
#[derive(Clone)]
pub struct RxgkServer(Arc<Offered>);

impl RxgkServer {
    /// Accepts tokens that one of `keys` has sealed and whose level is at least `minimum`. Removal of a key ends no
    /// existing connection.
    #[must_use]
    pub fn new(
        variant: Variant,
        keys: SharedKeys,
        names: Arc<LocalNames>,
        env: EnvRef,
        minimum: Level,
    ) -> Self {
        Self(Arc::new(Offered { variant, keys, names, env, minimum }))
    }
}

impl ServerSecurity for RxgkServer {
    fn index(&self) -> u8 {
        self.0.variant.index()
    }

    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(RxgkSession::new(self.0.clone()))
    }
}

impl fmt::Debug for RxgkServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RxgkServer")
            .field("variant", &self.0.variant)
            .field("keys", &self.0.keys)
            .field("minimum", &self.0.minimum)
            .finish_non_exhaustive()
    }
}
