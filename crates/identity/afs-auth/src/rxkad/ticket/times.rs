//! Validity of a ticket in time: `docs/protocol/rxkad.md` "6.2 Kerberos 5", time rules.

use super::{RxkadError, TicketPart};

/// How far a KDC's clock may be ahead of the server's, in seconds.
const SKEW: u64 = 15 * 60;

/// Longest life of a ticket, in seconds.
const LIFE_MAX: u64 = 30 * 24 * 3600;

/// The expiry that means never.
const NEVER: u64 = 0xffff_ffff;

/// Expiry of an accepted ticket, in Unix seconds. `None` is never.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validity(pub Option<u64>);

/// Checks whether a ticket is valid now. There is no clock tolerance at its expiry.
///
/// # Errors
/// [`RxkadError::NotValidYet`], [`RxkadError::Expired`], and [`RxkadError::BadTicket`] for times that no KDC should
/// use, such as more than 30 days.
pub fn check_times(ticket: &TicketPart, now: u64) -> Result<Validity, RxkadError> {
    let start = ticket.starttime.unwrap_or(ticket.authtime);
    let end = ticket.endtime.min(NEVER);
    if ticket.flags & TicketPart::INVALID != 0 {
        return Err(RxkadError::NotValidYet);
    }
    if now > end {
        return Err(RxkadError::Expired);
    }
    // Only a ticket that the cell made for itself starts at time zero.
    let too_long = start != 0 && end != NEVER && end.saturating_sub(start) > LIFE_MAX;
    if start >= end || start > now + SKEW + LIFE_MAX || too_long {
        return Err(RxkadError::BadTicket);
    }
    if start > now + SKEW {
        return Err(RxkadError::NotValidYet);
    }
    Ok(Validity((end != NEVER).then_some(end)))
}
