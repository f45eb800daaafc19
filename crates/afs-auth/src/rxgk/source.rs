//! Source of client sessions for one token.

use std::sync::Arc;

use afs_rpc::{EnvRef, SecuritySource};
use afs_rx::ClientSecurity;
use sha2::{Digest, Sha256};

use super::client::RxgkClient;
use super::{CallbackOffer, RxgkToken};

/// State that the clients of all connections with one token share.
pub(super) struct Holder {
    pub(super) token: RxgkToken,
    pub(super) env: EnvRef,
    pub(super) offer: Option<Arc<CallbackOffer>>,
}

/// Creates client sessions.
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

/// A name that two tokens share only if they are equal. It must depend on the key: the token itself is sent in the
/// clear, and an attacker who presents it with an invented key must not share the connections of its owner. The name
/// reveals no more of the key than one packet does.
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
