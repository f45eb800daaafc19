//! Ticket formats, from the kvno word of a RESPONSE: `docs/protocol/rxkad.md` "6. Tickets".

use super::RxkadError;

/// Format of a ticket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TicketFormat {
    /// 213: the encrypted part of a Kerberos 5 ticket.
    EncryptedData,
    /// 256: a whole Kerberos 5 ticket.
    Ticket,
}

impl TicketFormat {
    /// The number in a RESPONSE.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            TicketFormat::EncryptedData => 213,
            TicketFormat::Ticket => 256,
        }
    }

    /// The format with this number.
    ///
    /// # Errors
    /// [`RxkadError::UnknownKey`] for tickets of Kerberos 4, as from a server without a DES key;
    /// [`RxkadError::BadTicket`] for undefined numbers.
    pub const fn from_number(number: u32) -> Result<Self, RxkadError> {
        match number {
            213 => Ok(TicketFormat::EncryptedData),
            256 => Ok(TicketFormat::Ticket),
            0..256 => Err(RxkadError::UnknownKey),
            _ => Err(RxkadError::BadTicket),
        }
    }
}
