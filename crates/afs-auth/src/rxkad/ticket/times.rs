//! When a ticket is good: `docs/protocol/rxkad.md` "6.2 Kerberos 5", time rules.

use super::{RxkadError, TicketPart};

/// How far a KDC's clock may be ahead of ours, in seconds.
const SKEW: u64 = 15 * 60;

/// Longest life of a ticket, in seconds.
const LIFE_MAX: u64 = 30 * 24 * 3600;

/// An end that means never.
const NEVER: u64 = 0xffff_ffff;

/// Until when a ticket that was accepted is good, in Unix seconds. `None` is for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validity(pub Option<u64>);

/// Whether a ticket may be used now. There is no allowance for clocks at its end.
///
/// # Errors
/// [`RxkadError::NotValidYet`], [`RxkadError::Expired`], and [`RxkadError::BadTicket`] for times no KDC should give,
/// such as more than 30 days.
pub fn check_times(ticket: &TicketPart, now: u64) -> Result<Validity, RxkadError> {
    let start = ticket.starttime.unwrap_or(ticket.authtime);
    let end = ticket.endtime.min(NEVER);
    if ticket.flags & TicketPart::INVALID != 0 {
        return Err(RxkadError::NotValidYet);
    }
    if now > end {
        return Err(RxkadError::Expired);
    }
    // A ticket from the beginning of time is one that the cell printed for itself.
    let too_long = start != 0 && end != NEVER && end.saturating_sub(start) > LIFE_MAX;
    if start >= end || start > now + SKEW + LIFE_MAX || too_long {
        return Err(RxkadError::BadTicket);
    }
    if start > now + SKEW {
        return Err(RxkadError::NotValidYet);
    }
    Ok(Validity((end != NEVER).then_some(end)))
}
