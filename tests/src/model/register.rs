//! A file as a register: each close stores a whole new content, each open reads one.
//!
//! What is promised: whoever opens after a close was acknowledged reads that content or a later one, and nobody who has
//! seen a content sees an older one afterwards. While a close is under way, one machine may read the new content and
//! another still the old one: the server commits first and then breaks its promises.
//!
//! A store may happen more than once between its beginning and its end, which is what comes of asking again when a
//! server died before it could answer.

use std::fmt;

/// A moment; any clock that all operations of a history share.
pub type Time = u64;

/// A content that is stored by one close only. 0 is the content at the beginning.
pub type Content = u64;

/// One operation that was carried out, or perhaps was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// Who did it.
    pub client: usize,
    /// Store or read.
    pub kind: Kind,
    /// Which content.
    pub content: Content,
    /// When it began.
    pub begin: Time,
    /// When it ended; `None` for a store that was not acknowledged: it may take effect at any time from its beginning on, or never.
    pub end: Option<Time>,
    /// A read by a machine that may not have been told of what is newer: it may see what had been replaced, but nothing
    /// older than what it has seen or stored.
    pub doubted: bool,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A close that stores.
    Store,
    /// An open and a read.
    Read,
}

/// Why a history cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A read gave what nobody stored, or what was stored only afterwards.
    FromNowhere(Op),
    /// A content was read after another one had taken its place for certain: its store, the later store, the read.
    Lost(Box<[Op; 3]>),
    /// Somebody read a content and afterwards an older one: the store of the older, that of the newer, both reads.
    Backwards(Box<[Op; 4]>),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromNowhere(op) => write!(f, "read what was not there yet:\n    {op:?}"),
            Self::Lost(ops) => {
                let [old, new, read] = **ops;
                write!(f, "read what had been replaced:\n    {old:?}\n    {new:?}\n    {read:?}")
            }
            Self::Backwards(ops) => {
                let [old, new, first, second] = **ops;
                write!(f, "went back in time:\n    {old:?}\n    {new:?}\n    {first:?}\n    {second:?}")
            }
        }
    }
}

/// Whether the history of one file is as promised.
///
/// # Errors
/// Operations that cannot be.
pub fn check(history: &[Op]) -> Result<(), Violation> {
    let beginning =
        Op { client: usize::MAX, kind: Kind::Store, content: 0, begin: 0, end: Some(0), doubted: false };
    let stores: Vec<Op> =
        history.iter().filter(|op| op.kind == Kind::Store).chain([&beginning]).copied().collect();
    let mut reads: Vec<(Op, Op)> = Vec::new();
    for read in history.iter().filter(|op| op.kind == Kind::Read) {
        let source = stores.iter().find(|store| store.content == read.content);
        let Some(source) = source.filter(|store| read.end.is_some_and(|end| store.begin <= end)) else {
            return Err(Violation::FromNowhere(*read));
        };
        let lost = |store: &&Op| precedes(source, store) && precedes(store, read);
        if let Some(later) = stores.iter().find(lost).filter(|_| !read.doubted) {
            return Err(Violation::Lost(Box::new([*source, *later, *read])));
        }
        reads.push((*source, *read));
    }
    // What a machine has stored it has seen. What it could not store it has for itself, until it is stored or given up.
    let own = stores.iter().filter(|store| store.end.is_some() && store.client != usize::MAX);
    let common = reads.iter().filter(|(source, read)| source.end.is_some() || source.client != read.client);
    let seen: Vec<(Op, Op)> = own.map(|store| (*store, *store)).chain(common.copied()).collect();
    check_nobody_goes_back(&seen, &reads)
}

fn check_nobody_goes_back(seen: &[(Op, Op)], reads: &[(Op, Op)]) -> Result<(), Violation> {
    for (newer, first) in seen {
        let after =
            reads.iter().filter(|(_, second)| second.client == first.client && precedes(first, second));
        for (older, second) in after {
            if precedes(older, newer) {
                return Err(Violation::Backwards(Box::new([*older, *newer, *first, *second])));
            }
        }
    }
    Ok(())
}

/// One was over for certain before the other began.
fn precedes(one: &Op, other: &Op) -> bool {
    one.end.is_some_and(|end| end < other.begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(content: Content, begin: Time, end: Time) -> Op {
        Op { client: 1, kind: Kind::Store, content, begin, end: Some(end), doubted: false }
    }

    fn read(content: Content, begin: Time, end: Time) -> Op {
        Op { client: 2, kind: Kind::Read, content, begin, end: Some(end), doubted: false }
    }

    #[test]
    fn a_read_after_a_close_sees_it() {
        assert_eq!(check(&[store(1, 1, 2), read(1, 3, 4)]), Ok(()));
        assert!(check(&[store(1, 1, 2), read(0, 3, 4)]).is_err());
    }

    #[test]
    fn a_read_beside_a_close_may_see_either_but_nobody_goes_back() {
        let elsewhere = Op { client: 3, ..read(0, 4, 5) };
        assert_eq!(check(&[store(1, 1, 9), read(0, 2, 3)]), Ok(()));
        assert_eq!(check(&[store(1, 1, 9), read(1, 2, 3), elsewhere]), Ok(()));
        assert!(matches!(
            check(&[store(1, 1, 9), read(1, 2, 3), read(0, 4, 5)]),
            Err(Violation::Backwards(..))
        ));
    }

    #[test]
    fn who_was_not_told_may_see_what_was_replaced_but_nothing_older_than_it_has_seen_or_stored() {
        let untold = |content, begin| Op { doubted: true, ..read(content, begin, begin + 1) };
        assert_eq!(check(&[store(1, 1, 2), untold(0, 3)]), Ok(()));
        assert!(check(&[store(1, 1, 2), untold(1, 3), untold(0, 5)]).is_err());
        let own = Op { client: 2, ..store(1, 1, 2) };
        assert!(matches!(check(&[own, untold(0, 3)]), Err(Violation::Backwards(..))));
    }

    #[test]
    fn an_unacknowledged_store_may_or_may_not_have_happened() {
        let lost = Op { end: None, ..store(1, 2, 0) };
        assert_eq!(check(&[lost, read(0, 5, 6)]), Ok(()));
        assert_eq!(check(&[lost, read(0, 5, 6), read(1, 7, 8)]), Ok(()));
        let given_up = [store(2, 1, 2), Op { client: 2, ..lost }, read(1, 3, 4), read(2, 5, 6)];
        assert_eq!(check(&given_up), Ok(()));
        // Once more, since nobody told its client that it had happened.
        let repeated = [lost, read(1, 3, 4), store(2, 5, 6), read(2, 7, 8), read(1, 9, 10)];
        assert_eq!(check(&repeated), Ok(()));
    }

    #[test]
    fn nothing_comes_from_nowhere() {
        assert!(matches!(check(&[read(7, 1, 2)]), Err(Violation::FromNowhere(_))));
        assert!(matches!(check(&[read(1, 1, 2), store(1, 3, 4)]), Err(Violation::FromNowhere(_))));
    }

    #[test]
    fn a_lost_update_is_found() {
        assert!(matches!(check(&[store(1, 1, 2), store(2, 3, 4), read(1, 5, 6)]), Err(Violation::Lost(..))));
        // Stores side by side may end in any order.
        assert_eq!(check(&[store(1, 1, 4), store(2, 2, 3), read(1, 5, 6), read(1, 7, 8)]), Ok(()));
    }
}
