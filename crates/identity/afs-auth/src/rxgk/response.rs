//! Encoding of RESPONSE payloads: `docs/protocol/rxgk.md` "5. Challenge and response".

use afs_rx::SecurityError;
use afs_wire::xdr::{DecodeError, Encode, Reader};

use super::authenticator::SEALED_MAX;
use super::wire::{TOKEN_MAX, put_opaque};
use super::{RxgkTime, code};

/// The payload of a RESPONSE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// When the client created the connection, by its own clock; part of every transport key's derivation.
    pub start: RxgkTime,
    /// The sealed token.
    pub token: Vec<u8>,
    /// The sealed authenticator.
    pub authenticator: Vec<u8>,
}

impl Response {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24 + self.token.len() + self.authenticator.len());
        self.start.0.encode(&mut out);
        put_opaque(&self.token, &mut out);
        put_opaque(&self.authenticator, &mut out);
        out
    }

    /// Decodes the payload. Bytes after it are ignored, as by other servers.
    ///
    /// # Errors
    /// [`code::PACKET_SHORT`], also for fields longer than permitted.
    pub fn decode(bytes: &[u8]) -> Result<Self, SecurityError> {
        Self::read(&mut Reader::new(bytes)).map_err(|_| code::PACKET_SHORT)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = RxgkTime(reader.u64()?.cast_signed());
        let token = reader.opaque(TOKEN_MAX)?.to_vec();
        Ok(Self { start, token, authenticator: reader.opaque(SEALED_MAX)?.to_vec() })
    }
}
