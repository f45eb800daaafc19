//! Whose frame is next: requests with little left first, the others in turn.

use crate::frame::{DATA_MAX, RequestId};

/// Frames of requests with little left that may precede one of a longer request.
const SHORT_IN_A_ROW: u32 = 4;

/// The order of the data frames on a connection.
///
/// A request with at most one frame left goes first, so that a small read waits for one frame of a stream and not for the stream.
/// The others take turns in the order of their numbers. After four short requests in a row a longer one has its turn, so that
/// small reads without end do not stop it.
#[derive(Debug, Default)]
pub(super) struct Turns {
    latest_long: RequestId,
    short_in_a_row: u32,
}

/// A request that has bytes to send, and credit for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub request: RequestId,
    /// Bytes of the request that are still to be sent.
    pub left: u64,
}

impl Candidate {
    fn is_short(self) -> bool {
        self.left <= DATA_MAX as u64
    }
}

impl Turns {
    /// The request whose frame is next. The candidates come in the order of their numbers.
    pub fn next(&mut self, candidates: impl Iterator<Item = Candidate>) -> Option<RequestId> {
        let (mut short, mut first, mut after) = (None, None, None);
        for candidate in candidates {
            let slot = if candidate.is_short() {
                &mut short
            } else if candidate.request > self.latest_long {
                &mut after
            } else {
                &mut first
            };
            slot.get_or_insert(candidate.request);
        }
        let long = after.or(first);
        if short.is_some() && (long.is_none() || self.short_in_a_row < SHORT_IN_A_ROW) {
            self.short_in_a_row += 1;
            return short;
        }
        self.short_in_a_row = 0;
        self.latest_long = long?;
        long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(turns: &mut Turns, candidates: &[(u32, u64)]) -> u32 {
        let candidates =
            candidates.iter().map(|(request, left)| Candidate { request: RequestId(*request), left: *left });
        turns.next(candidates).unwrap().0
    }

    const LONG: u64 = 1 << 30;

    #[test]
    fn long_requests_take_turns() {
        let mut turns = Turns::default();
        let order: Vec<_> = (0..5).map(|_| served(&mut turns, &[(1, LONG), (2, LONG), (5, LONG)])).collect();
        assert_eq!(order, [1, 2, 5, 1, 2]);
    }

    #[test]
    fn a_short_request_is_next_and_many_of_them_stop_no_stream() {
        let mut turns = Turns::default();
        assert_eq!(served(&mut turns, &[(1, LONG)]), 1);
        let order: Vec<_> = (0..10).map(|_| served(&mut turns, &[(1, LONG), (7, 100)])).collect();
        assert_eq!(order, [7, 7, 7, 7, 1, 7, 7, 7, 7, 1]);
    }

    #[test]
    fn without_candidates_nobody_is_next() {
        assert_eq!(Turns::default().next(std::iter::empty()), None);
    }
}
