//! Lifetimes of callback promises (docs/protocol fileserver.md "12. Callback promises").

/// Promises expire by buckets of this many seconds.
pub(super) const BUCKET_SECONDS: u64 = 128;
/// Seconds by which the server keeps a promise longer than it told the client: an allowance for clock
/// differences and the network.
const GRACE_SECONDS: u64 = 180;
/// Lifetime in seconds of a volume-wide promise on a read-only volume.
const READ_ONLY_SECONDS: u64 = 2 * 3600;
/// Age in seconds below which a promise cannot be given back: longer than a client takes to send a give-up it
/// has decided on. Keeping a promise that the client has dropped costs one message.
pub(super) const YOUNG_SECONDS: u32 = 60;
/// A bulk status call counts the file as shared by this many more hosts, because the client did not request
/// just this file.
const BULK_SHARERS: u32 = 22;

/// The scope of a promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// One object, requested by itself.
    Single,
    /// One object of many in a bulk call.
    Bulk,
    /// A whole volume that changes only as a whole.
    ReadOnlyVolume,
}

/// Lifetime in seconds of a promise when `sharers` promises are held on the same object.
pub(super) fn seconds(grant: Grant, sharers: u32) -> u64 {
    let sharers = match grant {
        Grant::ReadOnlyVolume => return READ_ONLY_SECONDS,
        Grant::Bulk => sharers + BULK_SHARERS,
        Grant::Single => sharers,
    };
    match sharers {
        0..8 => 4 * 3600,
        8..16 => 3600,
        16..24 => 30 * 60,
        24..40 => 15 * 60,
        40..64 => 10 * 60,
        _ => 7 * 60,
    }
}

/// The bucket in which a promise granted at `now` expires, and the lifetime in seconds for the reply to the client.
/// The lifetime in the reply never ends after that bucket.
pub(super) fn expiry(now: u64, seconds: u64) -> (u64, u32) {
    let bucket = (now + seconds + GRACE_SECONDS).div_ceil(BUCKET_SECONDS);
    (bucket, (bucket * BUCKET_SECONDS - GRACE_SECONDS - now) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_objects_get_shorter_promises() {
        let table =
            [(0, 14400), (7, 14400), (8, 3600), (16, 1800), (24, 900), (40, 600), (64, 420), (9999, 420)];
        for (sharers, expected) in table {
            assert_eq!(seconds(Grant::Single, sharers), expected, "{sharers}");
        }
        assert_eq!(seconds(Grant::Bulk, 0), 1800);
        assert_eq!(seconds(Grant::ReadOnlyVolume, 5000), 7200);
    }

    #[test]
    fn the_client_is_told_less_than_is_remembered() {
        for now in [0, 1, 127, 128, 1000, 999_983] {
            let (bucket, told) = expiry(now, 420);
            assert!(now + u64::from(told) + GRACE_SECONDS <= bucket * BUCKET_SECONDS);
            assert!((420..420 + BUCKET_SECONDS).contains(&u64::from(told)));
        }
    }
}
