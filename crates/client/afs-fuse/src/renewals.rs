//! Look-ups of directories that the kernel holds: how long it keeps their names after that, and where there was one lately.
//!
//! The answer to a first look-up of a name is installed under the lock of the directory in which it is, which an invalidation of
//! the name waits for. A name that is held is looked up without the lock, and the answer is installed when the requesting
//! program runs again. An invalidation between the answer and that would be without effect, and nothing signals it. Therefore
//! an invalidation drops a name, and what is installed in a dropped name concerns nobody. A directory would lose by that what is
//! mounted on it, and the programs that work there their path. Its name stays, and
//!
//! * the answer to a look-up of it, if it is held, is valid for [`TERM`] only;
//! * before a user is led into a directory in which there was such an answer lately, all names are invalidated (INC_EPOCH),
//!   which such an answer does not undo.

use afs_env::Instant;
use fuser::INodeNo;
use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;

/// How long the kernel keeps the name of a directory that it held before. An invalidation in the instant of the answer has its effect after that at the latest.
pub(crate) const TERM: Duration = Duration::from_millis(10);
/// After so long the requesting program has run, and the term has passed.
const INSTALLED: Duration = Duration::from_secs(1);
/// Most directories that are remembered; in others such an answer is not kept.
const DIRECTORIES_MAX: usize = 1024;

/// The directories with such an answer within the last second.
#[derive(Default)]
pub(crate) struct Renewals(Mutex<HashMap<u64, Instant>>);

impl Renewals {
    /// Records that an answer may be kept, before it is decided whether it is. False if the table is full: then it must not be kept.
    pub(crate) fn note(&self, directory: INodeNo, now: Instant) -> bool {
        let mut last = self.0.lock();
        if last.len() >= DIRECTORIES_MAX && !last.contains_key(&directory.0) {
            last.retain(|_, at| now.saturating_since(*at) < INSTALLED);
        }
        let fits = last.len() < DIRECTORIES_MAX || last.contains_key(&directory.0);
        if fits {
            last.insert(directory.0, now);
        }
        fits
    }

    /// Whether the kernel may still install such an answer in a directory.
    pub(crate) fn is_recent(&self, directory: INodeNo, now: Instant) -> bool {
        self.0.lock().get(&directory.0).is_some_and(|at| now.saturating_since(*at) < INSTALLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_says_that_nothing_more_is_kept_until_the_oldest_have_passed() {
        let (renewals, start) = (Renewals::default(), Instant::default() + Duration::from_secs(9));
        assert!((0..DIRECTORIES_MAX as u64).all(|n| renewals.note(INodeNo(n), start)));
        assert!(!renewals.note(INodeNo(5000), start) && !renewals.is_recent(INodeNo(5000), start));
        let later = start + INSTALLED / 2;
        assert!(renewals.note(INodeNo(1), later) && renewals.is_recent(INodeNo(2), later));
        let last = start + INSTALLED;
        assert!(renewals.note(INodeNo(5000), last) && renewals.is_recent(INodeNo(1), last));
        assert_eq!((renewals.is_recent(INodeNo(2), last), renewals.0.lock().len()), (false, 2));
    }
}
