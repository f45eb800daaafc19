//! Model of a file: a register to which each close stores whole new contents, and which each open reads.
//!
//! The guarantee: an open after an acknowledged close reads its contents or later ones, and a machine that has read
//! contents never reads older ones afterwards. While a close is in progress, one machine may read the new contents and
//! another still the old ones: the server commits first and then breaks its promises.
//!
//! A store may take effect more than once between its begin and its end: the client repeats the request if a server
//! died before it could reply.

use std::fmt;

/// A time of any clock that all operations of a history share.
pub type Time = u64;

/// Identity of contents that one close only stores. 0 stands for the initial contents.
pub type Content = u64;

/// One operation that was carried out, or may have been.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Op {
    /// The machine.
    pub client: usize,
    /// Store or read.
    pub kind: Kind,
    /// The contents.
    pub content: Content,
    /// Time of its begin.
    pub begin: Time,
    /// Time of its end; `None` for a store that was not acknowledged: it may take effect at any time after its begin,
    /// or never.
    pub end: Option<Time>,
    /// A read by a machine that may have missed notifications: it may return contents that had been replaced, but none
    /// older than the contents that the machine has read or stored.
    pub doubted: bool,
    /// Of an acknowledged store, when it may be without effect all the same ([`super::durability`]).
    pub gap: Option<Gap>,
}

/// A time in which a store may be without effect, and then takes effect once more or never.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// From when on.
    pub from: Time,
    /// Until when; `None`: it may be lost for good.
    pub until: Option<Time>,
}

impl Op {
    /// After this time a store changes nothing any more.
    fn last_effect(&self) -> Option<Time> {
        self.gap.map_or(self.end, |gap| gap.until)
    }

    /// Whether a store may be without effect during a read.
    fn may_be_gone(&self, read: &Op) -> bool {
        self.gap.is_some_and(|gap| {
            read.end.is_none_or(|end| gap.from <= end) && gap.until.is_none_or(|until| read.begin <= until)
        })
    }
}

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A close that stores.
    Store,
    /// An open and a read.
    Read,
}

/// Why a history violates the guarantee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Violation {
    /// A read returned contents that were never stored, or were stored only later.
    FromNowhere(Op),
    /// Contents were read after others had certainly replaced them: their store, the later store, the read.
    Lost(Box<[Op; 3]>),
    /// A machine read contents and afterwards older ones: the store of the older, that of the newer, both reads.
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

/// Checks the history of one file.
///
/// # Errors
/// The operations that violate the guarantee.
pub fn check(history: &[Op]) -> Result<(), Violation> {
    let (client, kind) = (usize::MAX, Kind::Store);
    let beginning = Op { client, kind, content: 0, begin: 0, end: Some(0), doubted: false, gap: None };
    let stores: Vec<Op> =
        history.iter().filter(|op| op.kind == Kind::Store).chain([&beginning]).copied().collect();
    let mut reads: Vec<(Op, Op)> = Vec::new();
    for read in history.iter().filter(|op| op.kind == Kind::Read) {
        let source = stores.iter().find(|store| store.content == read.content);
        let Some(source) = source.filter(|store| read.end.is_some_and(|end| store.begin <= end)) else {
            return Err(Violation::FromNowhere(*read));
        };
        let lost = |store: &&Op| precedes(source, store) && ended(store, read) && !store.may_be_gone(read);
        if let Some(later) = stores.iter().find(lost).filter(|_| !read.doubted) {
            return Err(Violation::Lost(Box::new([*source, *later, *read])));
        }
        reads.push((*source, *read));
    }
    // A machine has seen contents that it stored. Contents that it could not store stay in its own cache, until they
    // are stored or dropped.
    let own = stores.iter().filter(|store| store.end.is_some() && store.client != usize::MAX);
    let common = reads.iter().filter(|(source, read)| source.end.is_some() || source.client != read.client);
    let seen: Vec<(Op, Op)> = own.map(|store| (*store, *store)).chain(common.copied()).collect();
    check_nobody_goes_back(&seen, &reads)
}

fn check_nobody_goes_back(seen: &[(Op, Op)], reads: &[(Op, Op)]) -> Result<(), Violation> {
    for (newer, first) in seen {
        let after = reads.iter().filter(|(_, second)| second.client == first.client && ended(first, second));
        for (older, second) in after {
            if precedes(older, newer) && !newer.may_be_gone(second) {
                return Err(Violation::Backwards(Box::new([*older, *newer, *first, *second])));
            }
        }
    }
    Ok(())
}

/// Whether one certainly had its last effect before the other had any. A machine makes its stores in order, also once more.
fn precedes(one: &Op, other: &Op) -> bool {
    let in_order = one.client == other.client && ended(one, other);
    in_order || one.last_effect().is_some_and(|end| end < other.begin)
}

/// Whether the program of one knew its outcome before the other began.
fn ended(one: &Op, other: &Op) -> bool {
    one.end.is_some_and(|end| end < other.begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(content: Content, begin: Time, end: Time) -> Op {
        Op { client: 1, kind: Kind::Store, content, begin, end: Some(end), doubted: false, gap: None }
    }

    fn read(content: Content, begin: Time, end: Time) -> Op {
        Op { client: 2, kind: Kind::Read, content, begin, end: Some(end), doubted: false, gap: None }
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
    fn a_client_without_a_break_may_see_the_replaced_value_but_none_older_than_it_has_seen_or_stored() {
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
        // Once more, since its client was not notified of the store.
        let repeated = [lost, read(1, 3, 4), store(2, 5, 6), read(2, 7, 8), read(1, 9, 10)];
        assert_eq!(check(&repeated), Ok(()));
    }

    #[test]
    fn a_store_may_be_without_effect_in_its_gap_alone() {
        let other = |begin, end| Op { client: 3, ..store(2, begin, end) };
        let gap = |from, until| Op { gap: Some(Gap { from, until }), ..store(1, 1, 2) };
        assert_eq!(check(&[gap(5, None), read(1, 3, 4), read(0, 6, 7)]), Ok(()));
        assert!(matches!(check(&[gap(5, None), read(0, 3, 4)]), Err(Violation::Lost(_))));
        assert_eq!(check(&[gap(5, Some(8)), read(0, 6, 7), read(1, 9, 10)]), Ok(()));
        assert!(matches!(check(&[gap(5, Some(8)), read(0, 9, 10)]), Err(Violation::Lost(_))));
        // Its repetition may replace what was stored in the gap, and nothing later.
        assert_eq!(check(&[gap(5, Some(8)), other(6, 7), read(2, 7, 8), read(1, 9, 10)]), Ok(()));
        assert!(matches!(check(&[gap(5, Some(8)), other(9, 10), read(1, 11, 12)]), Err(Violation::Lost(_))));
    }

    #[test]
    fn a_read_of_a_value_never_written_is_a_violation() {
        assert!(matches!(check(&[read(7, 1, 2)]), Err(Violation::FromNowhere(_))));
        assert!(matches!(check(&[read(1, 1, 2), store(1, 3, 4)]), Err(Violation::FromNowhere(_))));
    }

    #[test]
    fn a_lost_update_is_found() {
        assert!(matches!(check(&[store(1, 1, 2), store(2, 3, 4), read(1, 5, 6)]), Err(Violation::Lost(..))));
        // Concurrent stores may take effect in any order.
        assert_eq!(check(&[store(1, 1, 4), store(2, 2, 3), read(1, 5, 6), read(1, 7, 8)]), Ok(()));
    }
}
