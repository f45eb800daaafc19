//! Ring of the last errors of a server.

use std::collections::VecDeque;

use afs_rpc::{CallError, Instant};
use afs_wire::error::AbortCode;
use parking_lot::Mutex;

/// Errors that are kept.
const KEPT: usize = 8;
/// The error codes of systems, as they are and as OpenAFS sends them (docs/protocol/fileserver.md "9. Error codes").
const ERRNO: std::ops::Range<i32> = 1..101;
const UNIVERSAL: std::ops::Range<i32> = 49_733_376..49_733_632;

/// The last errors of a server, the oldest first.
#[derive(Default)]
pub(crate) struct ServerErrors(Mutex<VecDeque<ServerError>>);

/// An error, once or several times in a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerError {
    /// When it was seen last.
    pub at: Instant,
    pub operation: &'static str,
    pub error: CallError,
    pub times: u32,
}

impl ServerErrors {
    /// Records an error of a call, unless it is a reply about one object.
    pub fn note(&self, at: Instant, operation: &'static str, error: &CallError) {
        if !concerns_server(error) {
            return;
        }
        let mut errors = self.0.lock();
        let is_same = |last: &&mut ServerError| last.operation == operation && last.error == *error;
        if let Some(last) = errors.back_mut().filter(is_same) {
            (last.at, last.times) = (at, last.times.saturating_add(1));
            return;
        }
        if errors.len() >= KEPT {
            errors.pop_front();
        }
        errors.push_back(ServerError { at, operation, error: error.clone(), times: 1 });
    }

    /// The errors, the latest first.
    pub fn latest_first(&self) -> Vec<ServerError> {
        self.0.lock().iter().rev().cloned().collect()
    }
}

/// Refusals, and what a client tries in order to learn what a server knows, are no errors of the server; nor is what was stopped here.
fn concerns_server(error: &CallError) -> bool {
    match error {
        CallError::Abort(code) => {
            let of_object = [AbortCode::VNOVNODE, AbortCode::RXGEN_OPCODE].contains(code);
            !of_object && !ERRNO.contains(&code.0) && !UNIVERSAL.contains(&code.0)
        }
        CallError::GivenUp(_) | CallError::Closed | CallError::Misuse | CallError::Superseded => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn refusals_are_not_kept_and_what_the_server_cannot_do_is() {
        let errors = ServerErrors::default();
        let refusals = [13, 2, 102, -455, 49_733_388].map(|code| CallError::Abort(AbortCode(code)));
        for error in refusals.into_iter().chain([CallError::Closed, CallError::GivenUp(AbortCode::VIO)]) {
            errors.note(at(1), "FetchStatus", &error);
        }
        assert_eq!(errors.latest_first(), []);
        let faults = [CallError::Abort(AbortCode::VBUSY), CallError::Timeout, CallError::Ended];
        faults.iter().for_each(|error| errors.note(at(1), "FetchStatus", error));
        assert_eq!(errors.latest_first().len(), 3);
    }

    #[test]
    fn the_same_error_in_a_row_is_one_and_the_oldest_go() {
        let errors = ServerErrors::default();
        (0..5).for_each(|n| errors.note(at(n), "FetchStatus", &CallError::Timeout));
        let kept = errors.latest_first();
        assert_eq!((kept.len(), kept[0].times, kept[0].at), (1, 5, at(4)));
        for n in 10..30 {
            let code = AbortCode(if n % 2 == 0 { AbortCode::VBUSY.0 } else { AbortCode::VOFFLINE.0 });
            errors.note(at(n), "StoreData", &CallError::Abort(code));
        }
        let kept = errors.latest_first();
        assert_eq!((kept.len(), kept[0].at, kept[KEPT - 1].at), (KEPT, at(29), at(22)));
    }
}
