//! Connections made with one token.

use std::fmt::Write;
use std::sync::Arc;

use afs_rpc::SecuritySource;
use afs_rx::ClientSecurity;
use sha2::{Digest, Sha256};

use super::client::RxgkClient;
use super::{CallbackOffer, RxgkToken};
use crate::{Clock, Random};

/// What the clients of all connections with one token share.
pub(super) struct Holder {
    pub(super) token: RxgkToken,
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) offer: Option<Arc<CallbackOffer>>,
}

/// Makes clients.
pub(super) struct RxgkSource {
    holder: Arc<Holder>,
    name: String,
}

impl RxgkSource {
    pub(super) fn new(
        token: RxgkToken,
        clock: Clock,
        random: Random,
        offer: Option<Arc<CallbackOffer>>,
    ) -> Self {
        let name = name(&token, offer.as_deref());
        Self { holder: Arc::new(Holder { token, clock, random, offer }), name }
    }
}

impl SecuritySource for RxgkSource {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn session(&self) -> Box<dyn ClientSecurity> {
        Box::new(RxgkClient::new(self.holder.clone()))
    }
}

/// Two tokens have the same name only if they are the same token. What is hashed is no secret: it travels in the clear.
fn name(token: &RxgkToken, offer: Option<&CallbackOffer>) -> String {
    let digest = Sha256::digest(&token.sealed);
    let mut name = format!("rxgk {} ", token.variant.index());
    digest.iter().take(16).for_each(|byte| drop(write!(name, "{byte:02x}")));
    if let Some(offer) = offer {
        let _ = write!(name, " callback {}", offer.client());
    }
    name
}
