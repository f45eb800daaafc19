//! Derivation of transport keys: `docs/protocol/rxgk.md` "3. Cryptographic building blocks".

use afs_rx::{Cid, Epoch, SecurityError};

use super::{RxgkTime, code};
use crate::Secret;
use crate::crypto::{EncType, prf_plus};

/// K0, the key of a token, with its encryption type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MasterKey {
    enctype: EncType,
    secret: Secret,
}

/// Inputs that make the transport keys of a connection unique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionSeed {
    /// The connection's epoch.
    pub epoch: Epoch,
    /// The connection's id, without the channel.
    pub cid: Cid,
    /// When the client created the connection, by its own clock.
    pub start: RxgkTime,
}

impl MasterKey {
    /// A key of an encryption type that rxgk can use.
    ///
    /// # Errors
    /// [`code::BAD_ENCTYPE`]; [`code::BAD_TOKEN`] when the length is not the type's.
    pub fn new(enctype: i32, secret: Secret) -> Result<Self, SecurityError> {
        let known = EncType::from_number(enctype).filter(|known| known.is_for_rxgk());
        let enctype = known.ok_or(code::BAD_ENCTYPE)?;
        match secret.expose().len() == enctype.key_len() {
            true => Ok(Self { enctype, secret }),
            false => Err(code::BAD_TOKEN),
        }
    }

    /// Its encryption type, which is also that of every key derived from it.
    #[must_use]
    pub const fn enctype(&self) -> EncType {
        self.enctype
    }

    /// The key itself.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// TK: the key with this number on a connection.
    ///
    /// # Errors
    /// None in practice.
    pub fn transport_key(&self, connection: &ConnectionSeed, number: u32) -> Result<Self, SecurityError> {
        let mut seed = [0; 20];
        seed[..4].copy_from_slice(&connection.epoch.0.to_be_bytes());
        seed[4..8].copy_from_slice(&connection.cid.with_channel(0).to_be_bytes());
        seed[8..16].copy_from_slice(&connection.start.0.to_be_bytes());
        seed[16..].copy_from_slice(&number.to_be_bytes());
        let bytes = prf_plus(self.enctype, self.secret.expose(), &seed, self.enctype.key_len());
        let mut bytes = bytes.map_err(code::of)?;
        // random-to-key is the identity for all types here.
        Ok(Self { enctype: self.enctype, secret: Secret::new(std::mem::take(&mut *bytes)) })
    }
}
