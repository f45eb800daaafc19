//! Decrypted contents of a token.

use afs_rpc::Level;
use afs_rx::SecurityError;
use afs_wire::xdr::{DecodeError, Encode, Reader};
use zeroize::Zeroizing;

use super::wire::put_opaque;
use super::{AuthName, Lifetime, MasterKey, RxgkTime, Variant, code};
use crate::Secret;

/// The part of a token that only servers can read: `docs/protocol/rxgk.md` "4. Tokens".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenContents {
    /// K0.
    pub key: MasterKey,
    /// The level of every connection made with the token.
    pub level: Level,
    /// Start of the token's validity; ignored. Only index 6 has it.
    pub start: RxgkTime,
    /// Limits on each transport key.
    pub lifetime: Lifetime,
    /// When the token expires.
    pub expires: RxgkTime,
    /// The identities of the token's holder. Empty only in tokens that the cell's key made for itself.
    pub identities: Vec<AuthName>,
}

const IDENTITIES_MAX: usize = 32;
const KEY_MAX: usize = 256;

impl TokenContents {
    pub(super) fn encode(&self, variant: Variant) -> Zeroizing<Vec<u8>> {
        // Capacity for all of it, so that no copy of the key stays behind when the vector grows.
        let names = self.identities.iter().map(|name| 24 + name.data.len() + name.display.len());
        let mut out = Zeroizing::new(Vec::with_capacity(128 + names.sum::<usize>()));
        self.key.enctype().number().encode(&mut out);
        put_opaque(self.key.secret().expose(), &mut out);
        i32::from(self.level.number()).encode(&mut out);
        if variant == Variant::Yfs {
            self.start.0.encode(&mut out);
        }
        self.lifetime.seconds.encode(&mut out);
        self.lifetime.bytelife.encode(&mut out);
        self.expires.0.encode(&mut out);
        (self.identities.len() as u32).encode(&mut out);
        self.identities.iter().for_each(|name| name.encode(&mut out));
        out
    }

    pub(super) fn decode(variant: Variant, bytes: &[u8]) -> Result<Self, SecurityError> {
        let bad = |_: DecodeError| code::BAD_TOKEN;
        let mut reader = Reader::new(bytes);
        let enctype = reader.i32().map_err(bad)?;
        let secret = Secret::new(reader.opaque(KEY_MAX).map_err(bad)?.to_vec());
        let key = MasterKey::new(enctype, secret)?;
        let level = Level::from_number(reader.i32().map_err(bad)?).ok_or(code::BAD_LEVEL)?;
        let rest = Rest::decode(variant, &mut reader).map_err(bad)?;
        let Rest { start, lifetime, expires, identities } = rest;
        Ok(Self { key, level, start, lifetime, expires, identities })
    }
}

/// The fields after the level.
struct Rest {
    start: RxgkTime,
    lifetime: Lifetime,
    expires: RxgkTime,
    identities: Vec<AuthName>,
}

impl Rest {
    fn decode(variant: Variant, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = match variant {
            Variant::OpenAfs => RxgkTime::NEVER,
            Variant::Yfs => time(reader)?,
        };
        let lifetime = Lifetime { seconds: reader.u32()?, bytelife: reader.u32()? };
        let expires = time(reader)?;
        let count = reader.count(IDENTITIES_MAX)?;
        let identities = (0..count).map(|_| AuthName::decode(reader)).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(Self { start, lifetime, expires, identities })
    }
}

fn time(reader: &mut Reader<'_>) -> Result<RxgkTime, DecodeError> {
    Ok(RxgkTime(reader.u64()?.cast_signed()))
}
