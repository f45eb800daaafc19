//! Kerberos 5 tickets, as far as AFS uses them: `docs/protocol/rxkad.md` "6.2 Kerberos 5".
//!
//! Tickets of Kerberos 4, sealed with DES, are refused: they are no longer secure.

mod der;
mod encrypted;
mod format;
mod part;
mod times;

use afs_rpc::EnvRef;

use super::RxkadError;
use crate::Secret;
use crate::keys::{CellKey, KeyRing};

pub use format::TicketFormat;
pub use part::TicketPart;
pub use times::{Validity, check_times};

use encrypted::EncryptedData;

/// The content of a ticket, already decrypted.
#[cfg(feature = "fuzzing")]
pub(super) fn decode_part(bytes: &[u8]) -> Option<TicketPart> {
    TicketPart::decode(bytes).ok()
}

/// RFC 4120, section 7.5.1: the key usage of a ticket's encrypted part.
const USAGE: u32 = 2;

/// Opens a ticket with the cell's key that it names.
///
/// # Errors
/// [`RxkadError::UnknownKey`] for missing keys and for DES; [`RxkadError::BadTicket`] for a damaged or forged ticket,
/// or other data.
pub fn open(kvno: u32, ticket: &[u8], keys: &KeyRing) -> Result<TicketPart, RxkadError> {
    let encrypted = EncryptedData::of_ticket(TicketFormat::from_number(kvno)?, ticket)?;
    let (key, enctype) = encrypted.key(keys)?;
    let opened = enctype.decrypt(key.secret.expose(), USAGE, encrypted.cipher);
    let opened = Secret::new(opened.map_err(|_| RxkadError::BadTicket)?);
    TicketPart::decode(opened.expose()).map_err(|_| RxkadError::BadTicket)
}

/// Makes a ticket in the format [`TicketFormat::EncryptedData`] with one of the cell's keys.
///
/// # Errors
/// [`RxkadError::UnknownKey`] if this key cannot encrypt, or the ticket is too large.
pub fn make(part: &TicketPart, key: &CellKey, env: &EnvRef) -> Result<Vec<u8>, RxkadError> {
    let enctype = crate::crypto::EncType::from_number(key.enctype).ok_or(RxkadError::UnknownKey)?;
    let plain = part.encode().map_err(|_| RxkadError::UnknownKey)?;
    let cipher = enctype.encrypt(key.secret.expose(), USAGE, plain.expose(), env);
    let cipher = cipher.map_err(|_| RxkadError::UnknownKey)?;
    let whole = EncryptedData { enctype: key.enctype, kvno: Some(key.kvno), cipher: &cipher };
    whole.encode().map_err(|_| RxkadError::UnknownKey)
}
