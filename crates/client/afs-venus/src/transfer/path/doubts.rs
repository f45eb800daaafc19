//! Bounded count of capabilities that were refused as soon as they were given, by user, use and file.
//!
//! One refusal of that kind is a change of rights at the wrong moment. Several within a minute mean that the drive will refuse the
//! next one too.

use std::collections::BTreeMap;
use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::ids::Fid;

use super::capabilities::{Need, Use};
use crate::identity::TokenId;

/// Refusals of young capabilities for a file, within [`MEMORY`], after which no further one is asked for.
const REFUSALS_MAX: u32 = 3;
/// How long a refusal counts.
const MEMORY: Duration = Duration::from_secs(60);
/// Most files with such refusals. A further one is not tried again.
const FILES_MAX: usize = 256;

/// The refusals.
#[derive(Default)]
pub(super) struct Doubts(BTreeMap<(TokenId, Use, Fid), Doubt>);

struct Doubt {
    refusals: u32,
    since: Instant,
}

impl Doubts {
    /// Counts a refusal. Whether there were too many.
    pub fn note(&mut self, need: &Need, now: Instant) -> bool {
        self.0.retain(|_, doubt| now.saturating_since(doubt.since) < MEMORY);
        let key = (need.token, need.used, need.fid);
        if self.0.len() >= FILES_MAX && !self.0.contains_key(&key) {
            return true;
        }
        let doubt = self.0.entry(key).or_insert(Doubt { refusals: 0, since: now });
        doubt.refusals += 1;
        doubt.refusals >= REFUSALS_MAX
    }
}

#[cfg(test)]
mod tests {
    use afs_wire::ids::{Uniquifier, VnodeId, VolumeId};

    use super::*;

    fn need(vnode: u32) -> Need {
        let fid = Fid::new(VolumeId(7), VnodeId(vnode), Uniquifier(1));
        Need { token: TokenId(1), fid, directory: None, used: Use::Read }
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn the_third_refusal_within_a_minute_is_one_too_many() {
        let mut doubts = Doubts::default();
        let noted = [0, 10, 59].map(|secs| doubts.note(&need(2), at(secs)));
        assert_eq!(noted, [false, false, true]);
        assert!(!doubts.note(&need(4), at(59)), "another file");
        assert!(!doubts.note(&need(2), at(60)), "the first one is a minute ago");
    }

    #[test]
    fn files_are_bounded_and_one_too_many_is_not_tried_again() {
        let mut doubts = Doubts::default();
        assert!((0..FILES_MAX as u32).all(|n| !doubts.note(&need(2 * n), at(0))));
        assert!(doubts.note(&need(9999), at(0)) && doubts.0.len() == FILES_MAX);
        assert!(!doubts.note(&need(9999), at(60)) && doubts.0.len() == 1);
    }
}
