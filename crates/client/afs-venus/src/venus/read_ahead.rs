//! Read-ahead: fetches of the chunks that a sequential reader will need next, a few at a time.
//!
//! Each chunk is a fetch of its own, checked against the version of the handle as every other fetch is. A chunk is claimed only by a
//! fetch that begins at once: a reader that catches up waits for bytes that are on their way, never for a fetch that waits itself. What
//! fails is left to the reader, who fetches it again and gets the error.

use std::sync::Arc;
use std::time::Duration;

use crate::config::Limits;
use crate::data::FileData;
use crate::files::{FetchInProgress, Handle};
use crate::location::Server;
use crate::venus::Venus;
use crate::venus::fetch::FetchClaim;

/// How many fetches at a time are good for one reader.
struct Bound {
    max: u32,
    /// The server that the fetches are calls to; `None` if they go by its data path.
    called: Option<Arc<Server>>,
}

/// Bytes of a call that a server has under way at most: 32 packets of an Ethernet frame each, in OpenAFS.
const WINDOW: u128 = 32 * 1412;
/// Bytes in a second that a reader of a server far away is to have: a round trip that is long by distance, not by load, is worth
/// more calls.
const RATE: u128 = 12_500_000;

/// From this round trip on, what is ahead is fetched together with the first bytes of a file. From a nearer server it is asked for at the
/// next read: it would take processors and links from the first bytes, and from the program that gets them, for longer than a round
/// trip is.
const FAR: Duration = Duration::from_millis(5);

/// How many calls are good for one reader at a server with that round trip, if it is known.
fn calls_at_once(limits: &Limits, round_trip: Option<Duration>) -> u32 {
    let under_way = round_trip.unwrap_or_default().as_nanos() * RATE / 1_000_000_000;
    let wanted = u32::try_from(under_way.div_ceil(WINDOW)).unwrap_or(u32::MAX);
    let (near, far) = (limits.calls_per_reader, limits.calls_per_far_reader);
    wanted.clamp(near, far.max(near))
}

impl Venus {
    /// Starts fetching what a sequential reader of a handle will need next, without waiting. `left` fetches are left to the reader.
    pub(super) fn read_ahead(&self, handle: &Arc<Handle>, left: u32) {
        let data = handle.data();
        while let Some(counted) = self.begin_ahead(handle, left)
            && let Some(claim) = self.claim_ahead(handle, &data)
        {
            let (me, handle) = (self.without_waiting(), handle.clone());
            self.env.spawn(Box::pin(async move { me.fetch_ahead(&handle, &counted, claim).await }));
        }
    }

    /// Whether the server of a file is so far away that what is ahead does not wait for the first bytes.
    pub(super) fn is_far(&self, handle: &Handle) -> bool {
        let volume = self.location.volume_of(handle.vnode.key);
        let server = volume.and_then(|volume| volume.sites(self.now()).into_iter().next());
        server.and_then(|server| server.round_trip()).is_some_and(|round_trip| round_trip >= FAR)
    }

    /// Counts a fetch ahead of a reader. `None`: there are as many as are good for the reader and the server.
    pub(super) fn begin_ahead(&self, handle: &Handle, left: u32) -> Option<FetchInProgress> {
        let Bound { max, called } = self.fetches_at_once(handle)?;
        let permit = || called.map_or(Some(None), |server| server.permit_ahead().map(Some));
        handle.ahead.begin_below(max.saturating_sub(left), permit)
    }

    /// `None`: the server does not answer.
    fn fetches_at_once(&self, handle: &Handle) -> Option<Bound> {
        let server = self.location.volume_of(handle.vnode.key)?.sites(self.now()).into_iter().next()?;
        let limits = &self.limits;
        if server.is_unreachable() {
            return None;
        }
        match self.transfer.fetches_by_call(&server, limits.chunk_bytes) {
            true => Some(Bound { max: calls_at_once(limits, server.round_trip()), called: Some(server) }),
            false => Some(Bound { max: limits.read_ahead_chunks.saturating_add(1), called: None }),
        }
    }

    /// Fetches a claimed chunk, and then others as long as the reader is not further than they are.
    async fn fetch_ahead(&self, handle: &Arc<Handle>, counted: &FetchInProgress, first: FetchClaim) {
        let mut next = Some(first);
        while let Some(claim) = next {
            let (data, start) = (claim.data.clone(), claim.range.start);
            if let Err(error) = self.fetch_claimed(handle, claim).await {
                tracing::debug!(%error, "reading ahead failed; the reader will see for itself");
                return;
            }
            // Nothing has come if the server has an older version than it told.
            let has_come = data.content().present.contains(&(start..start + 1));
            let is_good = self.fetches_at_once(handle).is_some_and(|bound| counted.is_within(bound.max));
            let goes_on = has_come && is_good && Arc::ptr_eq(&data, &handle.data());
            next = goes_on.then(|| self.claim_ahead(handle, &data)).flatten();
        }
    }

    /// Claims the next chunk that a sequential reader will need. `None`: all of them are here or coming, or nobody reads in sequence
    /// any more.
    fn claim_ahead(&self, handle: &Handle, data: &Arc<FileData>) -> Option<FetchClaim> {
        let at = handle.ahead.position()?;
        self.files.handle(handle.id, "read").ok()?;
        let chunk = self.chunk_bytes();
        // At most a quarter of the cache, or the first chunks would be evicted before they are read.
        let ahead = u64::from(self.limits.read_ahead_chunks).min(self.files.bytes_max() / 4 / chunk);
        let (first, length) = (at - at % chunk, data.content().length);
        if ahead == 0 {
            return None;
        }
        // Of the chunk in which the reader is, what is behind the reader's own fetch: that the reader makes.
        let missing = {
            let content = data.content();
            let gaps = content.present.gaps(at..first.saturating_add(chunk).min(length));
            gaps.into_iter().flat_map(|gap| content.fetching.gaps(gap)).next()
        };
        let behind = missing.filter(|gap| gap.start > at);
        if let Some(claim) = behind.and_then(|gap| self.claim_chunk(data, gap.start)) {
            return Some(claim);
        }
        let starts = (1..=ahead).filter_map(|n| first.checked_add(n * chunk));
        starts.take_while(|start| *start < length).find_map(|start| self.claim_chunk(data, start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_calls_are_good_for_a_reader_far_away_within_a_bound() {
        let limits = Limits::default();
        let calls = |millis| calls_at_once(&limits, Some(Duration::from_millis(millis)));
        assert_eq!([0, 1, 10, 11, 15, 18, 50, 10_000].map(calls), [3, 3, 3, 4, 5, 5, 6, 6]);
        assert_eq!(calls_at_once(&limits, None), 3);
        assert_eq!(calls_at_once(&limits, Some(Duration::MAX)), 6);
        let few = Limits { calls_per_reader: 8, ..limits };
        assert_eq!(calls_at_once(&few, Some(Duration::from_secs(1))), 8);
    }
}
