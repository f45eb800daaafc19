//! Encrypted part of a ticket.

use der::Decode;
use der::asn1::{AnyRef, OctetStringRef};

use super::der::{Fields, field, sequence};
use super::{RxkadError, TicketFormat};
use crate::crypto::EncType;
use crate::keys::{CellKey, KeyKind, KeyRing};

/// RFC 4120, section 5.3: `Ticket` is APPLICATION 1.
const TICKET: u32 = 1;

/// `EncryptedData` of RFC 4120, section 5.2.9.
#[derive(Clone, Copy, Debug)]
pub(super) struct EncryptedData<'a> {
    pub enctype: i32,
    pub kvno: Option<u32>,
    pub cipher: &'a [u8],
}

impl<'a> EncryptedData<'a> {
    /// Realm and service of a whole ticket are ignored: the key determines whom it is for.
    pub(super) fn of_ticket(format: TicketFormat, ticket: &'a [u8]) -> Result<Self, RxkadError> {
        let found = match format {
            TicketFormat::EncryptedData => AnyRef::from_der(ticket).and_then(Self::decode),
            TicketFormat::Ticket => Fields::of_application(TICKET, ticket)
                .and_then(|mut fields| Self::decode(fields.required(3)?)),
        };
        found.map_err(|_| RxkadError::BadTicket)
    }

    fn decode(element: AnyRef<'a>) -> der::Result<Self> {
        let mut fields = Fields::of(element)?;
        let enctype = fields.required(0)?;
        // Some KDCs encode numbers above 2^31 as negative ones.
        let kvno = fields.optional::<i64>(1)?.map(|kvno| (kvno & 0xffff_ffff).cast_unsigned());
        let kvno = kvno.map(|kvno| u32::try_from(kvno).unwrap_or_default());
        let cipher = fields.required::<&OctetStringRef>(2)?.as_bytes();
        Ok(Self { enctype, kvno, cipher })
    }

    pub(super) fn encode(&self) -> der::Result<Vec<u8>> {
        let kvno = self.kvno.map(|kvno| field(1, &kvno)).transpose()?;
        sequence(&[
            field(0, &self.enctype)?,
            kvno.unwrap_or_default(),
            field(2, &OctetStringRef::new(self.cipher)?)?,
        ])
    }

    /// The key it is encrypted with. A missing number means 0.
    pub(super) fn key<'k>(&self, keys: &'k KeyRing) -> Result<(&'k CellKey, EncType), RxkadError> {
        let kvno = self.kvno.unwrap_or_default();
        let key = keys.find(KeyKind::RxkadKrb5, kvno, self.enctype);
        key.zip(EncType::from_number(self.enctype)).ok_or(RxkadError::UnknownKey)
    }
}
