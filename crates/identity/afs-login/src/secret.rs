//! Long-term secrets of a cell's login service.

use std::fmt;

use afs_auth::Secret;
use afs_rpc::EnvRef;
use afs_wire::ids::ViceId;
use afs_wire::xdr::{Decode, Encode, Reader};
use ed25519_dalek::{Signer as _, SigningKey};
use hkdf::Hkdf;
use opaque_ke::ServerSetup;
use sha2::Sha512;
use zeroize::Zeroizing;

use crate::crypto::{Randomness, SealKey, Suite, Transcript};
use crate::grant::put_opaque;
use crate::host_key::{HostKey, signed_bytes};
use crate::user::UserName;
use afs_wire::login::Fixed;

/// The secrets of a cell's login service: the passphrase verification key, the login host key, and the sealing key of
/// renewals. All login servers of a cell have the same one. With it and the records an attacker can guess passphrases
/// offline, and impersonate the cell's login service.
#[derive(Clone)]
pub struct LoginSecret {
    pub(crate) setup: ServerSetup<Suite>,
    host: SigningKey,
    renewals: Secret,
}

/// Bytes that are not an encoded login secret. Does not reveal them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not the secret of a login service, or one that another version wrote")]
pub struct BadLoginSecret;

/// Version of the encoded form.
const FORMAT: u32 = 1;
/// Longest serialised OPAQUE set-up read.
const SETUP_LEN_MAX: usize = 1024;

impl LoginSecret {
    /// A random secret, for a new cell. Passphrases registered under another one are lost.
    #[must_use]
    pub fn generate(env: &EnvRef) -> Self {
        let mut randomness = Randomness(env);
        let setup = ServerSetup::new(&mut randomness);
        let host = SigningKey::from_bytes(&Zeroizing::new(randomness.bytes()));
        Self { setup, host, renewals: Secret::new(randomness.bytes::<32>().to_vec()) }
    }

    /// The stored form, for a file that only the server may read.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let setup = Zeroizing::new(self.setup.serialize().to_vec());
        let mut out = Zeroizing::new(Vec::with_capacity(setup.len() + 128));
        FORMAT.encode(&mut out);
        put_opaque(&setup, &mut out);
        put_opaque(&*Zeroizing::new(self.host.to_bytes()), &mut out);
        put_opaque(self.renewals.expose(), &mut out);
        out
    }

    /// Decodes the bytes of [`LoginSecret::encode`].
    ///
    /// # Errors
    /// [`BadLoginSecret`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BadLoginSecret> {
        Self::read(bytes).ok_or(BadLoginSecret)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if u32::decode(&mut reader).ok()? != FORMAT {
            return None;
        }
        let setup = ServerSetup::deserialize(reader.opaque(SETUP_LEN_MAX).ok()?).ok()?;
        let host = SigningKey::from_bytes(reader.opaque(32).ok()?.try_into().ok()?);
        let renewals = reader.opaque(32).ok().filter(|key| key.len() == 32)?;
        reader.finish().ok()?;
        Some(Self { setup, host, renewals: Secret::new(renewals.to_vec()) })
    }

    /// The public login host key, which authenticates the cell's login service to clients.
    #[must_use]
    pub fn host_key(&self) -> HostKey {
        HostKey(self.host.verifying_key().to_bytes())
    }

    pub(crate) fn sign(&self, said: &Transcript) -> Fixed<64> {
        Fixed(self.host.sign(&signed_bytes(said)).to_bytes())
    }

    /// Keyed hash of a location, as stored in a user's record: of no use without the secret.
    pub(crate) fn location_hash(&self, user: &UserName, place: &[u8; 8]) -> [u8; 16] {
        let mut mark = [0; 16];
        let said = [b"andrew login place 1", &place[..], user.as_str().as_bytes()].concat();
        if Hkdf::<Sha512>::new(None, self.renewals.expose()).expand(&said, &mut mark).is_err() {
            unreachable!("16 bytes are less than 255 hashes");
        }
        mark
    }

    /// The key of a user's encrypted caches: the same for every token, passphrase and server, another one for a later user of the same name.
    pub(crate) fn cache_key(&self, user: &UserName, id: ViceId) -> [u8; 32] {
        let mut key = [0; 32];
        let said = [b"andrew cache key 1", &id.0.to_be_bytes()[..], user.as_str().as_bytes()].concat();
        if Hkdf::<Sha512>::new(None, self.renewals.expose()).expand(&said, &mut key).is_err() {
            unreachable!("32 bytes are less than 255 hashes");
        }
        key
    }

    pub(crate) fn renewal_key(&self) -> SealKey {
        SealKey::derive(self.renewals.expose(), b"", "andrew login renewal 1")
    }
}

impl fmt::Debug for LoginSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginSecret(host key {})", self.host_key())
    }
}
