//! State of a call over its attempts: sites, retry ladder, and the error so far. It waits for nothing itself.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallError, Instant};
use afs_wire::error::AbortCode;

use crate::calls::failure::Failure;
use crate::calls::retry::{Ladder, Outcome, RetryLimits, Step};
use crate::calls::{CallContext, CallOutcome, CallReply, Calls, Evidence, Target, WaitPolicy};
use crate::error::ErrorKind;
use crate::identity::Credentials;
use crate::location::{Server, Volume};

/// A call in progress at the sites of a volume.
pub(super) struct Attempts<'a> {
    calls: &'a Calls,
    context: &'a CallContext,
    volume: &'a Arc<Volume>,
    began: Instant,
    sites: Vec<Arc<Server>>,
    ladder: Ladder,
    failure: Failure,
    /// Whether an attempt to which no reply came may have been executed.
    maybe_executed: bool,
    /// Whether no reply came to the last attempt.
    is_silent: bool,
    /// Whether a proof that a server refused has been repeated.
    proven_again: bool,
}

impl<'a> Attempts<'a> {
    pub fn new(
        calls: &'a Calls,
        (context, volume): (&'a CallContext, &'a Arc<Volume>),
        operation: &'static str,
        began: Instant,
    ) -> Self {
        let sites = volume.sites(began);
        let ladder = Ladder::new(calls.retry_limits(), &view(&sites));
        let failure = Failure::new(operation, volume, &sites);
        let (maybe_executed, is_silent, proven_again) = (false, false, false);
        Self {
            calls,
            context,
            volume,
            began,
            sites,
            ladder,
            failure,
            maybe_executed,
            is_silent,
            proven_again,
        }
    }

    /// The first step.
    pub fn first(&mut self) -> Step {
        self.ladder.first()
    }

    /// The address of an attempt; and whether the call may be abandoned for another site.
    pub fn target(&self, at: (usize, usize)) -> Option<(Target, bool)> {
        let target = self.calls.target_at(self.context, self.volume, &self.sites, at)?;
        let hedged =
            self.context.wait == WaitPolicy::Glance || has_alternative(self.volume, &self.sites, at.0);
        Some((target, hedged))
    }

    /// The step after an attempt, or the outcome of the call.
    pub fn tried<T>(
        &mut self,
        target: &Target,
        at: (usize, usize),
        result: std::result::Result<CallReply<T>, (CallError, Outcome)>,
    ) -> ControlFlow<CallOutcome<T>, Step> {
        match result {
            Ok(reply) => {
                self.calls.measured_by(target, &self.sites);
                Break(CallOutcome { result: Ok(reply), maybe_executed: self.maybe_executed })
            }
            Err((error, outcome)) => {
                if let Some(code) = Calls::refusal(target, &error) {
                    self.token_refused(target, code);
                    return Continue(Step::Try { site: at.0, address: at.1 });
                }
                self.is_silent = error.is_silence();
                self.maybe_executed |= self.is_silent;
                self.failure.note(target, &error);
                if self.maybe_executed && self.context.wait == WaitPolicy::NoRetry {
                    return Break(self.failed(ErrorKind::ServerUnreachable));
                }
                Continue(self.ladder.next(outcome, self.elapsed()))
            }
        }
    }

    /// The server may accept another proof, and may still accept the same call without a token.
    fn token_refused(&mut self, target: &Target, code: AbortCode) {
        if code.says_expired() || std::mem::replace(&mut self.proven_again, true) {
            self.calls.do_without(target, code);
        } else {
            self.calls.prove_again(target);
        }
    }

    /// The step after a pause.
    pub fn paused(&mut self) -> Step {
        let sites = self.look_again();
        self.ladder.resumed(&sites, self.elapsed())
    }

    /// The step after waiting for a server, which is reachable again or not.
    pub fn waited(&mut self, is_reachable: std::result::Result<bool, ErrorKind>) -> Step {
        match is_reachable {
            Ok(true) => {
                let sites = self.look_again();
                self.ladder.returned(&sites, self.elapsed())
            }
            Ok(false) => self.ladder.abandoned(),
            Err(kind) => Step::Fail(kind),
        }
    }

    /// The step after a query of the location service, which changed the sites or not.
    pub fn relocated(&mut self, changed: bool) -> Step {
        let sites = self.look_again();
        self.ladder.relocated(&sites, changed, self.elapsed())
    }

    /// Whether no reply came to the last attempt.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// The reply of a server, which is an abort, as the outcome of the call.
    pub fn refused<T>(&self, code: AbortCode) -> CallOutcome<T> {
        CallOutcome { result: Err(self.failure.reply(code)), maybe_executed: self.maybe_executed }
    }

    /// The end of the call without a reply.
    pub fn failed<T>(&self, kind: ErrorKind) -> CallOutcome<T> {
        CallOutcome { result: Err(self.failure.of(kind)), maybe_executed: self.maybe_executed }
    }

    /// Takes the sites as they are now.
    fn look_again(&mut self) -> Vec<Vec<bool>> {
        self.sites = self.volume.sites(self.calls.now());
        view(&self.sites)
    }

    fn elapsed(&self) -> Duration {
        self.calls.now().saturating_since(self.began)
    }
}

impl Calls {
    fn retry_limits(&self) -> RetryLimits {
        RetryLimits {
            total: match self.limits.waits_for_ever() {
                true => Duration::MAX,
                false => self.limits.operation_max,
            },
            offline: self.limits.offline_max,
            pause: self.limits.busy_pause,
            pause_max: self.limits.busy_pause_max,
        }
    }

    fn target_at(
        &self,
        context: &CallContext,
        volume: &Volume,
        sites: &[Arc<Server>],
        (site, address): (usize, usize),
    ) -> Option<Target> {
        let server = sites.get(site)?;
        let address = server.addresses().get(address)?.clone();
        let credentials = self.parts.identity.credentials(context.user, volume.cell);
        let is_refused = server.refused_tokens.has(credentials.id, self.now());
        let credentials = if is_refused { Credentials::NONE } else { credentials };
        let connection = address.connection(&self.parts.rx, &credentials);
        let (server, evidence) = (server.clone(), Evidence::default());
        Some(Target { server, address, connection, token: credentials.id, evidence })
    }

    /// Records the round-trip time of the site that replied, if there are several.
    fn measured_by(&self, target: &Target, sites: &[Arc<Server>]) {
        if sites.len() > 1
            && let Some(smoothed) = self.parts.rx.round_trip(target.address.peer)
        {
            target.address.known_round_trip(smoothed);
        }
    }
}

/// For each site: which of its addresses are unreachable.
fn view(sites: &[Arc<Server>]) -> Vec<Vec<bool>> {
    let site =
        |server: &Arc<Server>| server.addresses().iter().map(|address| address.is_unreachable()).collect();
    sites.iter().map(site).collect()
}

/// True if a call to one site of a volume may be abandoned for another: the volume is read-only, so that nothing is
/// changed twice, and another site is reachable.
fn has_alternative(volume: &Volume, sites: &[Arc<Server>], at: usize) -> bool {
    let mut others = sites.iter().enumerate().filter(|(index, _)| *index != at);
    !volume.is_writable() && others.any(|(_, server)| !server.is_unreachable())
}
