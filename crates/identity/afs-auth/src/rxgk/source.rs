//! Source of client sessions for one token.

use std::sync::Arc;

use afs_rpc::{EnvRef, Level, Person, SecuritySource};
use afs_rx::{ClientSecurity, SecurityError};
use sha2::{Digest, Sha256};

use super::client::RxgkClient;
use super::{CallbackOffer, RxgkToken, Variant, person};
use crate::Secret;

/// State that the clients of all connections with one token share.
pub(super) struct Holder {
    pub(super) token: RxgkToken,
    pub(super) env: EnvRef,
    pub(super) said: Said,
}

/// What a client tells each server besides, in the application data of its authenticator.
pub(super) enum Said {
    Nothing,
    /// A token for calls back.
    Callback(Arc<CallbackOffer>),
    /// Whom a holder of the cell's key acts for.
    Person(Person),
}

impl Said {
    /// The application data of one connection.
    pub(super) fn appdata(
        &self,
        variant: Variant,
        level: Level,
        env: &EnvRef,
    ) -> Result<Secret, SecurityError> {
        match self {
            Self::Nothing => Ok(Secret::new(Vec::new())),
            Self::Callback(offer) => offer.appdata(variant, level, env),
            Self::Person(person) => Ok(person::appdata(person)),
        }
    }
}

/// Creates client sessions.
pub(super) struct RxgkSource {
    holder: Arc<Holder>,
    name: String,
}

impl RxgkSource {
    pub(super) fn new(token: RxgkToken, env: EnvRef, said: Said) -> Self {
        let name = name(&token, &said);
        Self { holder: Arc::new(Holder { token, env, said }), name }
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
fn name(token: &RxgkToken, said: &Said) -> String {
    let digest = Sha256::new()
        .chain_update([token.variant.index(), token.level.number()])
        .chain_update(token.lifetime.seconds.to_be_bytes())
        .chain_update(token.lifetime.bytelife.to_be_bytes())
        .chain_update(token.key.enctype().number().to_be_bytes())
        .chain_update(token.key.secret().expose())
        .chain_update(&token.sealed)
        .finalize();
    let name = digest.iter().take(16).fold("rxgk:".to_owned(), |name, byte| format!("{name}{byte:02x}"));
    match said {
        Said::Nothing => name,
        Said::Callback(offer) => format!("{name} callback {}", offer.client()),
        Said::Person(person) => format!("{name} for {person}"),
    }
}
