//! Token of either class, with its encoding.

use std::sync::Arc;

use afs_rpc::{EnvRef, Level, Person, SecuritySource, UnixTime};
use afs_wire::xdr::{DecodeError, Encode, Reader};
use zeroize::Zeroizing;

use crate::Secret;
use crate::rxgk::{CallbackOffer, Lifetime, MasterKey, RxgkTime, RxgkToken, Variant};
use crate::rxkad::{self, RxkadToken, SessionKey, TicketFormat};

/// A token of a cell: opaque to its holder but for the key in it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Token {
    /// For rxkad.
    Rxkad(RxkadToken),
    /// For rxgk.
    Rxgk(RxgkToken),
}

/// Bytes that are not an encoded token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("these bytes are no token")]
pub struct NotAToken;

/// First word of every encoded token: the format's version.
const VERSION: u32 = 1;
/// Longest encoded token, in bytes.
const ENCODED_MAX: usize = 16 << 10;

impl Token {
    /// A source of connections with this token. The source's name identifies the token and reveals nothing of it.
    #[must_use]
    pub fn source(&self, env: EnvRef) -> Arc<dyn SecuritySource> {
        match self {
            Token::Rxkad(token) => token.source(env),
            Token::Rxgk(token) => token.source(env),
        }
    }

    /// As [`Token::source`]; where the class supports it, servers also get a token for authenticated calls back to
    /// this client.
    #[must_use]
    pub fn source_with_callback(&self, env: EnvRef, offer: Arc<CallbackOffer>) -> Arc<dyn SecuritySource> {
        match self {
            Token::Rxkad(token) => token.source(env),
            Token::Rxgk(token) => token.source_with_callback(env, offer),
        }
    }

    /// As [`Token::source`]; where the class supports it, servers also learn for whom a holder of the cell's key acts.
    #[must_use]
    pub fn source_for(&self, env: EnvRef, person: Person) -> Arc<dyn SecuritySource> {
        match self {
            Token::Rxkad(token) => token.source(env),
            Token::Rxgk(token) => token.source_for(env, person),
        }
    }

    /// When it expires; `None` is never.
    #[must_use]
    pub fn expires(&self) -> Option<UnixTime> {
        match self {
            Token::Rxkad(token) => token.expires(),
            Token::Rxgk(token) => token.expires(),
        }
    }

    /// Protection level of its connections.
    #[must_use]
    pub fn level(&self) -> Level {
        match self {
            Token::Rxkad(token) => token.level(),
            Token::Rxgk(token) => token.level,
        }
    }

    /// The same at another level, where the class lets the client choose: with rxkad, not with rxgk.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        match self {
            Token::Rxkad(token) => Token::Rxkad(token.with_level(level)),
            Token::Rxgk(_) => self,
        }
    }

    /// The token and its key as bytes, for a file or a socket that only its owner can read.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Capacity for all of it, so that no copy of the key stays behind when the vector grows.
        let mut out = Zeroizing::new(Vec::with_capacity(ENCODED_MAX));
        VERSION.encode(&mut out);
        match self {
            Token::Rxkad(token) => encode_rxkad(token, &mut out),
            Token::Rxgk(token) => encode_rxgk(token, &mut out),
        }
        out
    }

    /// Decodes the bytes of [`Token::encode`].
    ///
    /// # Errors
    /// [`NotAToken`].
    pub fn decode(bytes: &[u8]) -> Result<Self, NotAToken> {
        if bytes.len() > ENCODED_MAX {
            return Err(NotAToken);
        }
        let mut reader = Reader::new(bytes);
        if reader.u32() != Ok(VERSION) {
            return Err(NotAToken);
        }
        let index = reader.u32().ok().and_then(|index| u8::try_from(index).ok()).ok_or(NotAToken)?;
        let token = match Variant::from_index(index) {
            Some(variant) => decode_rxgk(variant, &mut reader).map(Token::Rxgk)?,
            None if index == rxkad::INDEX => decode_rxkad(&mut reader).map(Token::Rxkad)?,
            None => return Err(NotAToken),
        };
        reader.finish().map_err(|_| NotAToken)?;
        Ok(token)
    }
}

/// As in `docs/protocol/rxgk.md` "9. Local token store", preceded by the security index.
fn encode_rxgk(token: &RxgkToken, out: &mut Vec<u8>) {
    u32::from(token.variant.index()).encode(out);
    token.key.enctype().number().encode(out);
    i32::from(token.level.number()).encode(out);
    token.lifetime.seconds.encode(out);
    token.lifetime.bytelife.encode(out);
    token.expires.0.encode(out);
    put_opaque(&token.sealed, out);
    put_opaque(token.key.secret().expose(), out);
}

fn decode_rxgk(variant: Variant, reader: &mut Reader<'_>) -> Result<RxgkToken, NotAToken> {
    let bad = |_: DecodeError| NotAToken;
    let enctype = reader.i32().map_err(bad)?;
    let level = reader.i32().ok().and_then(Level::from_number).ok_or(NotAToken)?;
    let seconds = reader.u32().map_err(bad)?;
    let lifetime = Lifetime { seconds, bytelife: reader.u32().map_err(bad)? };
    let expires = RxgkTime(reader.u64().map_err(bad)?.cast_signed());
    let sealed = reader.opaque(ENCODED_MAX).map_err(bad)?.to_vec();
    let secret = Secret::new(reader.opaque(64).map_err(bad)?.to_vec());
    let key = MasterKey::new(enctype, secret).map_err(|_| NotAToken)?;
    Ok(RxgkToken { variant, key, level, lifetime, expires, sealed })
}

fn encode_rxkad(token: &RxkadToken, out: &mut Vec<u8>) {
    u32::from(rxkad::INDEX).encode(out);
    token.format().number().encode(out);
    i32::from(token.level().number()).encode(out);
    token.expires().is_some().encode(out);
    token.expires().map_or(0, |expires| expires.secs).encode(out);
    out.extend_from_slice(token.key().expose());
    put_opaque(token.ticket(), out);
}

fn decode_rxkad(reader: &mut Reader<'_>) -> Result<RxkadToken, NotAToken> {
    let bad = |_: DecodeError| NotAToken;
    let format = reader.u32().ok().and_then(|number| TicketFormat::from_number(number).ok());
    let level = reader.i32().ok().and_then(Level::from_number).ok_or(NotAToken)?;
    let ends = reader.u32().map_err(bad)? != 0;
    let secs = reader.u64().map_err(bad)?;
    let key = SessionKey::new(*reader.array().map_err(bad)?);
    let ticket = reader.opaque(ENCODED_MAX).map_err(bad)?;
    let expires = ends.then_some(UnixTime { secs, nanos: 0 });
    let token = RxkadToken::new(format.ok_or(NotAToken)?, ticket, key, expires).map_err(|_| NotAToken)?;
    Ok(token.with_level(level))
}

fn put_opaque(bytes: &[u8], out: &mut Vec<u8>) {
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0; 3][..bytes.len().wrapping_neg() & 3]);
}
