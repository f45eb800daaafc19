//! The messages of RFC 4120 that a client exchanges with a KDC, in DER.
//!
//! Only what a request for a service ticket needs. Tickets stay bytes: only the service and the KDC can decrypt them.

mod basic;
mod error;
mod reply;
mod request;

pub use basic::{Checksum, EncryptedData, EncryptionKey, KerberosString, PrincipalName};
pub use error::KrbError;
pub use reply::{EncKdcRepPart, KdcRep};
pub use request::{ApReq, Authenticator, KdcReq, KdcReqBody, PaData};

use der::asn1::Application;
use der::{Decode, Encode, EncodeValue, TagMode, TagNumber, Tagged};

/// Protocol version number, in every message.
pub const PVNO: u8 = 5;

/// Number of an `APPLICATION` tag, which identifies the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTag(u8);

impl MessageTag {
    /// Ticket.
    pub const TICKET: Self = Self(1);
    /// Authenticator.
    pub const AUTHENTICATOR: Self = Self(2);
    /// TGS-REQ.
    pub const TGS_REQ: Self = Self(12);
    /// TGS-REP.
    pub const TGS_REP: Self = Self(13);
    /// AP-REQ.
    pub const AP_REQ: Self = Self(14);
    /// The encrypted part of a TGS-REP.
    pub const ENC_TGS_REP_PART: Self = Self(26);
    /// KRB-ERROR.
    pub const KRB_ERROR: Self = Self(30);

    /// The number in the field `msg-type`.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The tag at the start of `bytes`, if it is an `APPLICATION` tag.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let first = *bytes.first()?;
        (first & 0xe0 == 0x60).then_some(Self(first & 0x1f))
    }

    /// Encodes `message` within this tag.
    ///
    /// # Errors
    /// It is longer than DER permits.
    pub fn encode<T: EncodeValue + Tagged>(self, message: T) -> der::Result<Vec<u8>> {
        let number = TagNumber(u32::from(self.0));
        Application { tag_number: number, tag_mode: TagMode::Explicit, value: message }.to_der()
    }

    /// Decodes the contents of this tag, which must fill `bytes`.
    ///
    /// # Errors
    /// Another tag, or a malformed message.
    pub fn decode<'a, T: Decode<'a, Error = der::Error>>(self, bytes: &'a [u8]) -> der::Result<T> {
        let message = Application::<T>::from_der(bytes)?;
        let number = TagNumber(u32::from(self.0));
        if message.tag_number == number {
            return Ok(message.value);
        }
        let expected = Some(number.application(true));
        Err(message.tag_number.application(true).unexpected_error(expected).into())
    }
}
