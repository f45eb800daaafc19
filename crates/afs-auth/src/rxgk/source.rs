//! Connections made with one token.

use std::sync::Arc;

use afs_rpc::{EnvRef, SecuritySource};
use afs_rx::ClientSecurity;
use sha2::{Digest, Sha256};

use super::client::RxgkClient;
use super::{CallbackOffer, RxgkToken};

/// What the clients of all connections with one token share.
pub(super) struct Holder {
    pub(super) token: RxgkToken,
    pub(super) env: EnvRef,
    pub(super) offer: Option<Arc<CallbackOffer>>,
}

/// Makes clients.
pub(super) struct RxgkSource {
    holder: Arc<Holder>,
    name: String,
}

impl RxgkSource {
    pub(super) fn new(token: RxgkToken, env: EnvRef, offer: Option<Arc<CallbackOffer>>) -> Self {
        let name = name(&token, offer.as_deref());
        Self { holder: Arc::new(Holder { token, env, offer }), name }
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

/// A name that another token has only if it is the same in everything. It must depend on the key: the token itself
/// travels in the clear, and whoever repeats it with a made-up key must not get the connections of its owner. The key
/// is no easier to find from it than from one packet.
fn name(token: &RxgkToken, offer: Option<&CallbackOffer>) -> String {
    let digest = Sha256::new()
        .chain_update([token.variant.index(), token.level.number()])
        .chain_update(token.lifetime.seconds.to_be_bytes())
        .chain_update(token.lifetime.bytelife.to_be_bytes())
        .chain_update(token.key.enctype().number().to_be_bytes())
        .chain_update(token.key.secret().expose())
        .chain_update(&token.sealed)
        .finalize();
    let name = digest.iter().take(16).fold("rxgk:".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    match offer {
        None => name,
        Some(offer) => format!("{name} callback {}", offer.client()),
    }
}
