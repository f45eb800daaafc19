//! State machine of one call: from the outcome of an attempt to the next step.

use std::time::Duration;

use afs_wire::error::AbortCode;

use super::outcome::is_network;
use super::sites::Sites;
use super::{Outcome, RetryLimits, Step};
use crate::error::ErrorKind;

/// Queries of the location service before the next pause.
const RELOCATIONS_MAX: u32 = 2;
/// Retries of a call that the server lost.
const LOSSES_MAX: u32 = 2;
/// How often unreachable servers are waited for.
pub(super) const RETURNS_MAX: u32 = 8;

/// State of one call on the retry ladder.
#[derive(Clone, Debug)]
pub struct Ladder {
    limits: RetryLimits,
    sites: Sites,
    relocations: u32,
    pauses: u32,
    losses: u32,
    returns: u32,
    /// No site replied, and the location service was queried for other sites.
    relocated_after_silence: bool,
    /// The error if no site is left.
    error: ErrorKind,
}

impl Ladder {
    /// `sites` in order of preference; for each of their addresses, whether it is unreachable.
    pub fn new(limits: RetryLimits, sites: &[Vec<bool>]) -> Self {
        let error = if sites.is_empty() { ErrorKind::NoVolume } else { ErrorKind::ServerUnreachable };
        let (relocations, pauses, losses, returns) = (0, 0, 0, 0);
        let sites = Sites::new(sites);
        Ladder { limits, sites, relocations, pauses, losses, returns, relocated_after_silence: false, error }
    }

    /// The first step.
    pub fn first(&mut self) -> Step {
        self.advance(Duration::ZERO)
    }

    /// The step after the outcome of an attempt, `elapsed` after the start.
    pub fn next(&mut self, outcome: Outcome, elapsed: Duration) -> Step {
        match outcome {
            Outcome::Closed => Step::Fail(ErrorKind::ShutDown),
            Outcome::Malformed => Step::Fail(ErrorKind::Protocol),
            Outcome::Lost => self.same_address(ErrorKind::ServerUnreachable, elapsed),
            // Packets of an attacker may have arrived in the server's name.
            Outcome::GivenUp(AbortCode::RX_PROTOCOL_ERROR) => self.same_address(ErrorKind::Protocol, elapsed),
            Outcome::GivenUp(code) => Step::Reply(code),
            Outcome::NoReply => self.other_address(elapsed),
            Outcome::Slow => self.other_site(ErrorKind::ServerUnreachable, elapsed),
            Outcome::Abort(code) => self.after_abort(code, elapsed),
        }
    }

    /// The step after a pause.
    pub fn resumed(&mut self, sites: &[Vec<bool>], elapsed: Duration) -> Step {
        self.sites.replace(sites);
        self.relocations = 0;
        self.advance(elapsed)
    }

    /// The step after an unreachable server has replied, or the volume was found at others.
    pub fn returned(&mut self, sites: &[Vec<bool>], elapsed: Duration) -> Step {
        self.returns += 1;
        self.resumed(sites, elapsed)
    }

    /// The step when there is no server worth waiting for, or the time is over.
    pub fn abandoned(&self) -> Step {
        Step::Fail(self.error)
    }

    /// The step after a query of the location service; `changed` if the sites differ from before.
    pub fn relocated(&mut self, sites: &[Vec<bool>], changed: bool, elapsed: Duration) -> Step {
        match changed {
            true => self.sites.replace(sites),
            false => self.sites.pass(),
        }
        self.advance(elapsed)
    }

    fn after_abort(&mut self, code: AbortCode, elapsed: Duration) -> Step {
        match code {
            AbortCode::VBUSY | AbortCode::VRESTARTING | AbortCode::VSALVAGING => {
                self.sites.mark_busy();
                self.other_site(ErrorKind::VolumeBusy, elapsed)
            }
            AbortCode::VNOSERVICE => self.other_site(ErrorKind::ServerUnreachable, elapsed),
            AbortCode::VNOVOL | AbortCode::VMOVED | AbortCode::VOFFLINE | AbortCode::VSALVAGE => {
                self.not_at_site(ErrorKind::of_abort(code), elapsed)
            }
            code if is_network(code) => self.other_address(elapsed),
            code => Step::Reply(code),
        }
    }

    /// The volume is not available at this site, or no longer there.
    fn not_at_site(&mut self, why: ErrorKind, elapsed: Duration) -> Step {
        self.error = why;
        self.sites.mark_unavailable(why);
        if self.relocations < RELOCATIONS_MAX {
            self.relocations += 1;
            return Step::Relocate;
        }
        self.other_site(why, elapsed)
    }

    fn same_address(&mut self, error: ErrorKind, elapsed: Duration) -> Step {
        match self.sites.at() {
            Some((site, address)) if self.losses < LOSSES_MAX && elapsed < self.limits.total => {
                self.losses += 1;
                Step::Try { site, address }
            }
            _ => {
                self.error = error;
                self.advance(elapsed)
            }
        }
    }

    fn other_address(&mut self, elapsed: Duration) -> Step {
        self.sites.mark_down();
        self.error = ErrorKind::ServerUnreachable;
        self.advance(elapsed)
    }

    fn other_site(&mut self, error: ErrorKind, elapsed: Duration) -> Step {
        self.error = error;
        self.sites.pass();
        self.advance(elapsed)
    }

    /// Calls the best address not yet tried; without one, pauses, waits or fails.
    fn advance(&mut self, elapsed: Duration) -> Step {
        if elapsed >= self.limits.total {
            return Step::Fail(self.error);
        }
        match self.sites.take() {
            Some((site, address)) => Step::Try { site, address },
            None => self.exhausted(elapsed),
        }
    }

    fn exhausted(&mut self, elapsed: Duration) -> Step {
        if self.sites.is_any_busy() {
            self.error = ErrorKind::VolumeBusy;
            return self.pause_or_fail(elapsed, self.limits.total);
        }
        if let Some(why) = self.sites.why_unavailable() {
            self.error = why;
            return self.pause_or_fail(elapsed, self.limits.offline);
        }
        match self.error {
            ErrorKind::ServerUnreachable => self.no_site_replied(elapsed),
            error => Step::Fail(error),
        }
    }

    fn no_site_replied(&mut self, elapsed: Duration) -> Step {
        // Not if all addresses were known to be unreachable before.
        if self.sites.at().is_some() && !self.relocated_after_silence {
            self.relocated_after_silence = true;
            return Step::Relocate;
        }
        match self.sites.is_any_down() && self.returns < RETURNS_MAX {
            true => Step::AwaitServer(self.limits.total - elapsed),
            false => Step::Fail(self.error),
        }
    }

    fn pause_or_fail(&mut self, elapsed: Duration, until: Duration) -> Step {
        let pause = self.limits.pause_after(self.pauses);
        if elapsed + pause >= until {
            return Step::Fail(self.error);
        }
        self.pauses += 1;
        Step::Pause(pause)
    }
}
