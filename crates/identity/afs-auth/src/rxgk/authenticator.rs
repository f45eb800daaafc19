//! Authenticator: the client's proof that it knows K0: `docs/protocol/rxgk.md` "5. Challenge and response".

use afs_rpc::{EnvRef, Level};
use afs_rx::{CHANNELS, Cid, Epoch, SecurityError};
use afs_wire::xdr::{DecodeError, Encode, Reader};
use zeroize::Zeroizing;

use super::wire::put_opaque;
use super::{MasterKey, code, usage};
use crate::Secret;
use crate::crypto::equal_in_constant_time;

/// Bytes of a challenge.
pub const NONCE_LEN: usize = 20;

/// Longest authenticator when sealed, in bytes.
pub(super) const SEALED_MAX: usize = 1416;

/// The authenticator, which a client seals with the connection's transport key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authenticator {
    /// The challenge.
    pub nonce: [u8; NONCE_LEN],
    /// Application data, which may contain a key.
    pub appdata: Secret,
    /// The level's number; must be that of the token.
    pub level: i32,
    /// The connection's epoch.
    pub epoch: u32,
    /// The connection's id, without the channel.
    pub cid: u32,
    /// The client's call numbers.
    pub call_numbers: [u32; CHANNELS],
}

impl Authenticator {
    /// The authenticator for a challenge on a connection.
    #[must_use]
    pub fn new(nonce: [u8; NONCE_LEN], level: Level, epoch: Epoch, cid: Cid) -> Self {
        let cid = cid.with_channel(0);
        let level = i32::from(level.number());
        Self {
            nonce,
            appdata: Secret::new(Vec::new()),
            level,
            epoch: epoch.0,
            cid,
            call_numbers: [0; CHANNELS],
        }
    }

    /// Seals it.
    ///
    /// # Errors
    /// [`code::DATA_LEN`] when there is too much application data.
    pub fn seal(&self, transport: &MasterKey, env: &EnvRef) -> Result<Vec<u8>, SecurityError> {
        let (enctype, key) = (transport.enctype(), transport.secret().expose());
        let sealed = enctype.encrypt(key, usage::CLIENT_ENC_RESPONSE, &self.encode(), env);
        let sealed = sealed.map_err(code::of)?;
        if sealed.len() <= SEALED_MAX { Ok(sealed) } else { Err(code::DATA_LEN) }
    }

    /// Opens a sealed authenticator.
    ///
    /// # Errors
    /// [`code::SEALED_INCONSISTENT`]; [`code::BAD_CHALLENGE`] when the content has another form.
    pub fn open(transport: &MasterKey, sealed: &[u8]) -> Result<Self, SecurityError> {
        let (enctype, key) = (transport.enctype(), transport.secret().expose());
        let plain = enctype.decrypt(key, usage::CLIENT_ENC_RESPONSE, sealed);
        let plain = Zeroizing::new(plain.map_err(|_| code::SEALED_INCONSISTENT)?);
        Self::decode(&plain).map_err(|_| code::BAD_CHALLENGE)
    }

    /// True when nonce, level, epoch and connection are those of `expected`; all are compared, in constant time.
    #[must_use]
    pub fn matches(&self, expected: &Self) -> bool {
        equal_in_constant_time(&self.challenged(), &expected.challenged())
    }

    fn challenged(&self) -> [u8; NONCE_LEN + 12] {
        let mut out = [0; NONCE_LEN + 12];
        out[..NONCE_LEN].copy_from_slice(&self.nonce);
        out[20..24].copy_from_slice(&self.level.to_be_bytes());
        out[24..28].copy_from_slice(&self.epoch.to_be_bytes());
        out[28..].copy_from_slice(&self.cid.to_be_bytes());
        out
    }

    fn encode(&self) -> Zeroizing<Vec<u8>> {
        // Capacity for all of it, so that no copy of the data stays behind when the vector grows.
        let mut out = Zeroizing::new(Vec::with_capacity(64 + self.appdata.expose().len()));
        out.extend_from_slice(&self.nonce);
        put_opaque(self.appdata.expose(), &mut out);
        self.level.encode(&mut out);
        self.epoch.encode(&mut out);
        self.cid.encode(&mut out);
        (CHANNELS as u32).encode(&mut out);
        self.call_numbers.encode(&mut out);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let nonce = *reader.array()?;
        let appdata = Secret::new(reader.opaque(SEALED_MAX)?.to_vec());
        let (level, epoch, cid) = (reader.i32()?, reader.u32()?, reader.u32()?);
        let count = reader.u32()?;
        if count != CHANNELS as u32 {
            return Err(DecodeError::BadValue { what: "number of channels", value: count });
        }
        let mut call_numbers = [0; CHANNELS];
        for number in &mut call_numbers {
            *number = reader.u32()?;
        }
        reader.finish()?;
        Ok(Self { nonce, appdata, level, epoch, cid, call_numbers })
    }
}
