//! Queue in order of arrival at one processor.

/// What came of a replay, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Served {
    /// Time that the processor worked.
    pub(super) busy: f64,
    /// From the beginning to the end of the last request.
    pub(super) elapsed: f64,
    /// Mean time from a request's arrival to its end.
    pub(super) response: f64,
}

/// Serves requests in order of arrival: arrival and work, in seconds.
pub(super) fn serve(requests: impl IntoIterator<Item = (f64, f64)>) -> Served {
    let (mut served, mut count) = (Served::default(), 0_u32);
    for (arrival, work) in requests {
        served.busy += work;
        served.elapsed = served.elapsed.max(arrival) + work;
        served.response += served.elapsed - arrival;
        count += 1;
    }
    served.response /= f64::from(count.max(1));
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_for_those_before_it() {
        // The second waits 1 s, the third finds the processor idle.
        let served = serve([(0.0, 2.0), (1.0, 1.0), (5.0, 1.0)]);
        assert_eq!(served, Served { busy: 4.0, elapsed: 6.0, response: (2.0 + 2.0 + 1.0) / 3.0 });
        assert_eq!(serve([]), Served::default());
    }
}
