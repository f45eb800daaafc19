//! SSH keys of users: signatures over transcripts.

use std::fmt;

use afs_wire::ids::CellName;
use afs_wire::login::{KeyBlob, SshSignature};
use sha2::{Digest as _, Sha256};
use ssh_encoding::{Decode, Encode};
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, EcdsaCurve, HashAlg, PublicKey, Signature, SshSig};

use crate::crypto::Transcript;

/// The hash inside the signatures.
const HASH: HashAlg = HashAlg::Sha512;
/// Bit of a security key's signature: the user touched the key.
const USER_PRESENT: u8 = 1;

/// Signs with one SSH key: a key file, or an agent.
pub trait Signer: Send + Sync {
    /// The key.
    fn key(&self) -> &PublicKey;

    /// An SSH signature over `data`. May block, as an agent that asks its user does.
    ///
    /// # Errors
    /// A line for the user, without secrets.
    fn sign(&self, data: &[u8]) -> Result<Signature, String>;
}

/// An SSH public key that a user may log in with.
#[derive(Clone, PartialEq, Eq)]
pub struct UserKey {
    blob: KeyBlob,
    key: PublicKey,
}

/// The key is of an unsupported kind, or invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not an SSH public key that can be used: take an Ed25519 key, or ECDSA over nistp256")]
pub struct BadUserKey;

impl UserKey {
    /// Accepts a public key: Ed25519, ECDSA over nistp256, or Ed25519 on a security key.
    ///
    /// # Errors
    /// [`BadUserKey`]: RSA among others, whose one implementation in Rust leaks through its timing.
    pub fn new(key: &PublicKey) -> Result<Self, BadUserKey> {
        let taken = matches!(
            key.algorithm(),
            Algorithm::Ed25519 | Algorithm::SkEd25519 | Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 }
        );
        let blob = key.to_bytes().ok().filter(|_| taken).and_then(|bytes| KeyBlob::new(bytes).ok());
        blob.map(|blob| Self { blob, key: key.clone() }).ok_or(BadUserKey)
    }

    /// Decodes the wire form.
    ///
    /// # Errors
    /// [`BadUserKey`].
    pub fn from_wire(blob: &KeyBlob) -> Result<Self, BadUserKey> {
        Self::new(&PublicKey::from_bytes(blob).map_err(|_| BadUserKey)?)
    }

    /// Its wire form.
    #[must_use]
    pub fn blob(&self) -> &KeyBlob {
        &self.blob
    }

    /// Its id in the store: the SHA-256 of its wire form.
    pub(crate) fn hash(&self) -> [u8; 32] {
        Sha256::digest(&*self.blob).into()
    }

    /// Verifies a signature over a transcript in `cell`.
    pub(crate) fn has_signed(&self, cell: &CellName, said: &Transcript, signature: &SshSig) -> bool {
        let touched = match self.key.key_data() {
            // Flags and a counter of four bytes end such a signature.
            KeyData::SkEd25519(_) => {
                let flags = signature.signature_bytes().iter().rev().nth(4);
                flags.is_some_and(|flags| flags & USER_PRESENT != 0)
            }
            _ => true,
        };
        touched && self.key.verify(&namespace(cell), &said.digest(), signature).is_ok()
    }
}

/// The key's fingerprint: `SHA256:…`.
impl fmt::Display for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fingerprint(HashAlg::Sha256).fmt(f)
    }
}

impl fmt::Debug for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserKey({self})")
    }
}

/// A signature over a transcript, in the form of PROTOCOL.sshsig.
pub(crate) fn sign(cell: &CellName, said: &Transcript, signer: &dyn Signer) -> Result<SshSig, String> {
    let told = |e: ssh_key::Error| e.to_string();
    let data = SshSig::signed_data(&namespace(cell), HASH, &said.digest()).map_err(told)?;
    let signature = signer.sign(&data)?;
    SshSig::new(signer.key().key_data().clone(), namespace(cell), HASH, signature).map_err(told)
}

/// The wire form, or `None` for one that is far too long.
pub(crate) fn to_wire(signature: &SshSig) -> Option<SshSignature> {
    let mut bytes = Vec::new();
    signature.encode(&mut bytes).ok()?;
    SshSignature::new(bytes).ok()
}

/// Decodes the wire form; `None` if it is not exactly one signature in canonical form: the version is not under the
/// signature, and the lengths of nested values are not verified by its parser.
pub(crate) fn from_wire(bytes: &SshSignature) -> Option<SshSig> {
    let mut rest: &[u8] = bytes;
    let signature = SshSig::decode(&mut rest).ok().filter(|_| rest.is_empty())?;
    let same = to_wire(&signature).is_some_and(|again| again == *bytes);
    (same && signature.version() == SshSig::VERSION).then_some(signature)
}

/// Prevents a signature made for one cell, or for another purpose, from being accepted in another.
fn namespace(cell: &CellName) -> String {
    format!("login@{cell}.andrew")
}
