//! Token for authenticated callbacks from a server to its client: `docs/protocol/rxgk.md` "5. Challenge and
//! response", planned content of the application data.

use afs_rpc::{EnvRef, Level};
use afs_rx::SecurityError;
use afs_wire::ids::Uuid;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::local_token::make_token;
use super::wire::{TOKEN_MAX, put_opaque};
use super::{Lifetime, MasterKey, RxgkTime, RxgkToken, Variant, code};
use crate::Secret;
use crate::crypto::EncType;
use crate::keys::{CellKey, KeyKind, KeyRing, SharedKeys};

/// A client's offer to receive callbacks: a key of its own, with which it makes a token for each server it
/// authenticates to. The callback service accepts those tokens, and no others.
#[derive(Debug)]
pub struct CallbackOffer {
    client: Uuid,
    keys: KeyRing,
}

impl CallbackOffer {
    /// An offer of the client with this UUID, with a new key.
    ///
    /// # Errors
    /// None in practice.
    pub fn new(client: Uuid, env: &EnvRef) -> Result<Self, SecurityError> {
        let enctype = EncType::DEFAULT;
        let secret = enctype.generate(env);
        let key = CellKey { kind: KeyKind::Rxgk, kvno: 1, enctype: enctype.number(), secret };
        let mut keys = KeyRing::default();
        keys.add(key).map_err(|_| code::INCONSISTENCY)?;
        Ok(Self { client, keys })
    }

    /// The client that servers shall call.
    #[must_use]
    pub const fn client(&self) -> Uuid {
        self.client
    }

    /// The keys with which the callback service accepts tokens. To that service, the holder of such a token is
    /// [`Principal::CellKey`](afs_rpc::Principal::CellKey).
    #[must_use]
    pub fn keys(&self) -> SharedKeys {
        SharedKeys::new(self.keys.clone())
    }

    /// Application data of one connection: a fresh token with the connection's own level.
    pub(super) fn appdata(
        &self,
        variant: Variant,
        level: Level,
        env: &EnvRef,
    ) -> Result<Secret, SecurityError> {
        let key = self.keys.best(KeyKind::Rxgk).ok_or(code::NO_SUCH_KEY)?;
        let token = make_token(variant, key, level, env)?;
        let mut out = Vec::with_capacity(192 + token.sealed.len());
        self.client.encode(&mut out);
        put_opaque(&token.sealed, &mut out);
        put_opaque(token.key.secret().expose(), &mut out);
        token.key.enctype().number().encode(&mut out);
        // The server that can decrypt this is the intended one.
        Uuid::NIL.encode(&mut out);
        Ok(Secret::new(out))
    }
}

/// The token for calls back to a client, if its application data contains one in a known form.
pub(super) fn token(variant: Variant, appdata: &[u8], level: Level) -> Option<RxgkToken> {
    let (sealed, secret, enctype) = decode(appdata).ok()?;
    let key = MasterKey::new(enctype, secret).ok()?;
    let (lifetime, expires) = (Lifetime::USUAL, RxgkTime::NEVER);
    (!sealed.is_empty()).then_some(RxgkToken { variant, key, level, lifetime, expires, sealed })
}

fn decode(appdata: &[u8]) -> Result<(Vec<u8>, Secret, i32), DecodeError> {
    let mut reader = Reader::new(appdata);
    Uuid::decode(&mut reader)?;
    let sealed = reader.opaque(TOKEN_MAX)?.to_vec();
    let secret = Secret::new(reader.opaque(64)?.to_vec());
    let enctype = reader.i32()?;
    Uuid::decode(&mut reader)?;
    reader.finish()?;
    Ok((sealed, secret, enctype))
}
