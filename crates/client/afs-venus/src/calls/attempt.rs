//! One attempt of a call at one address, and what its outcome says about the address.

use afs_rpc::{CallError, Instant};

use crate::calls::retry::{Outcome, marks_down};
use crate::calls::watch::Watched;
use crate::calls::{CallReply, Calls, Target, TimedCall};

impl Calls {
    /// Makes first contact with the server if needed, makes the attempt, and records the outcome for the address.
    pub(super) async fn attempt<T, F, Fut>(
        &self,
        target: &Target,
        operation: &'static str,
        hedged: bool,
        attempt: &mut F,
    ) -> std::result::Result<CallReply<T>, (CallError, Outcome)>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let begun = self.now();
        let timer = self.times().begin(TimedCall { operation, peer: target.address.peer, begun });
        let work = async {
            self.first_contact(target).await?;
            self.parts.counters.call(operation);
            let (serial, started) = (self.parts.promises.serial(), self.now());
            let value = attempt(target.clone()).await?;
            let (server, token) = (target.server.clone(), target.token);
            Ok(CallReply { value, server, serial, started, token, follows: false })
        };
        let done = if hedged { self.hedged(target, work).await } else { work.await };
        timer.end(self.now(), done.is_err());
        let done = done.map_err(|error| {
            let outcome = outcome(target, &error, begun);
            (error, outcome)
        });
        if let Err((error, _)) = &done {
            target.server.errors.note(self.now(), operation, error);
        }
        if done.is_err() || target.evidence.is_of_call() {
            self.note_outcome(target, begun, done.as_ref().err());
        }
        done
    }

    /// Records what the outcome of an attempt begun at `begun` says about the address.
    pub(super) fn note_outcome(
        &self,
        target: &Target,
        begun: Instant,
        failed: Option<&(CallError, Outcome)>,
    ) {
        let now = self.now();
        let peer = target.address.peer;
        match failed {
            Some((_, outcome)) if marks_down(*outcome) => {
                if target.address.became_unreachable(begun, now) {
                    tracing::warn!(server = %peer, "lost contact with file server");
                }
                let watched = Target::anonymous(&target.server, target.address.clone());
                self.watch(Watched::File(watched));
            }
            Some((CallError::Abort(_), _)) | None => {
                if target.address.absence.answered(now) {
                    tracing::info!(server = %peer, "file server is back up");
                    self.reachable_again.notify_waiters();
                    (self.returned)();
                }
            }
            Some(_) => {}
        }
    }
}

/// Converts an error of a call begun at `begun` for the retry ladder. If the server has replied to other calls since,
/// the loss concerns this call alone: a restarted server does not know earlier calls. If the server has become
/// unreachable after all, the next attempt shows it.
pub(super) fn outcome(target: &Target, error: &CallError, begun: Instant) -> Outcome {
    match outcome_of(error) {
        Outcome::NoReply if target.address.absence.heard_since(begun) => Outcome::Lost,
        outcome => outcome,
    }
}

/// Converts an error for the retry ladder.
pub(super) fn outcome_of(error: &CallError) -> Outcome {
    match error {
        CallError::Abort(code) => Outcome::Abort(*code),
        CallError::Unreachable { .. } => Outcome::NoReply,
        CallError::Timeout => Outcome::Slow,
        CallError::Closed => Outcome::Closed,
        CallError::GivenUp(code) => Outcome::GivenUp(*code),
        _ => Outcome::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::error::AbortCode;
    use afs_wire::xdr::DecodeError;

    use super::*;

    #[test]
    fn only_silence_and_network_codes_of_the_peer_mark_it_down() {
        let peer = ([10, 0, 0, 1], 7000).into();
        let table = [
            (CallError::Unreachable { peer }, true),
            (CallError::Abort(AbortCode(-1)), true),
            (CallError::Abort(AbortCode::VRESTARTING), false),
            (CallError::Abort(AbortCode::RXGEN_OPCODE), false),
            (CallError::Abort(AbortCode::VBUSY), false),
            (CallError::Abort(AbortCode::VIO), false),
            (CallError::Timeout, false),
            (CallError::Decode(DecodeError::Short { needed: 4, left: 0 }), false),
            (CallError::Ended, false),
            (CallError::TooLong { limit: 9 }, false),
            (CallError::Superseded, false),
            (CallError::Misuse, false),
            (CallError::Closed, false),
        ];
        // Local codes never mark a server unreachable.
        let ours = (-500..500).chain([i32::MIN, i32::MAX]).map(AbortCode);
        let ours = ours.map(|code| (CallError::GivenUp(code), false));
        for (error, is_down) in table.into_iter().chain(ours) {
            assert_eq!(marks_down(outcome_of(&error)), is_down, "{error:?}");
        }
    }
}
