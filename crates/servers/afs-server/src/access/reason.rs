//! Explanation of a caller's rights: the sum of [`super::rights`], term by term.

use afs_wire::fs::FileKind;
use afs_wire::ids::{Rights, ViceId};

use super::{IMPLICIT_RIGHTS, Object, owns};
use crate::subject::Subject;

/// A source of rights, positive or negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// An entry of the access list, for the caller or a group of the caller.
    Entry(ViceId),
    /// An entry for a group of the caller's host.
    HostEntry(ViceId),
    /// Membership in `system:administrators`.
    Administrator,
    /// Ownership of the file.
    Owner,
    /// Not owning the file: only owners administer files, whatever the access list says.
    NotOwner,
}

/// Why a caller has, or lacks, one right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The right: one bit.
    pub right: Rights,
    /// Whether the caller has it.
    pub had: bool,
    /// The sources that give it.
    pub given_by: Vec<Source>,
    /// The sources that take it away. A host's entries reduce only what the host has, the caller's only what
    /// the caller has.
    pub taken_by: Vec<Source>,
}

/// Explains each of the fifteen rights of a caller on an object, in the order of their bits. Those with `had`
/// set are together the value of [`super::rights`].
pub fn explain(subject: &Subject, object: &Object<'_>) -> Vec<Reason> {
    let known = (0..u32::BITS).map(|bit| Rights(1 << bit)).filter(|right| KNOWN & right.0 != 0);
    known.map(|right| reason(subject, object, right)).collect()
}

fn reason(subject: &Subject, object: &Object<'_>, right: Rights) -> Reason {
    let (own, own_less) = entries(object, right, |id| subject.is(id), Source::Entry);
    let (host, host_less) = entries(object, right, |id| subject.host_is(id), Source::HostEntry);
    let mut had = (!own.is_empty() && own_less.is_empty()) || (!host.is_empty() && host_less.is_empty());
    let (mut given_by, mut taken_by) = ([own, host].concat(), [own_less, host_less].concat());
    if subject.is_administrator() && IMPLICIT_RIGHTS.contains(right) {
        given_by.push(Source::Administrator);
        had = true;
    }
    if object.kind != FileKind::Directory && right == Rights::ADMINISTER {
        had = owns(subject, object);
        if had { given_by.push(Source::Owner) } else { taken_by.push(Source::NotOwner) }
    }
    Reason { right, had, given_by, taken_by }
}

/// The entries that give a right, and those that take it away, among the ids accepted by `is`.
fn entries(
    object: &Object<'_>,
    right: Rights,
    is: impl Fn(ViceId) -> bool,
    source: fn(ViceId) -> Source,
) -> (Vec<Source>, Vec<Source>) {
    let of = |entries: &[(ViceId, Rights)]| -> Vec<Source> {
        let matching = entries.iter().filter(|(id, rights)| rights.contains(right) && is(*id));
        matching.map(|(id, _)| source(*id)).collect()
    };
    (of(&object.acl.positive), of(&object.acl.negative))
}

/// `rlidwka` and `A` to `H` (docs/protocol fileserver.md "5.2 Rights").
const KNOWN: u32 = 0xff00_007f;

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::acl::Acl;
    use afs_wire::ids::Mode;

    const ALICE: ViceId = ViceId(5);
    const STAFF: ViceId = ViceId(-300);
    const LAB: ViceId = ViceId(-400);

    fn list(positive: &[(ViceId, &str)], negative: &[(ViceId, &str)]) -> Acl {
        let entries = |entries: &[(ViceId, &str)]| {
            entries.iter().map(|(id, rights)| (*id, rights.parse().unwrap())).collect::<Vec<_>>()
        };
        Acl::new(entries(positive), entries(negative)).unwrap()
    }

    fn object(kind: FileKind, acl: &Acl) -> Object<'_> {
        Object { kind, owner: ALICE, mode: Mode(0o644), acl, volume_owner: ViceId(9) }
    }

    fn of(reasons: &[Reason], right: Rights) -> Reason {
        reasons.iter().find(|reason| reason.right == right).unwrap().clone()
    }

    #[test]
    fn each_term_of_the_sum_is_named() {
        let acl = list(
            &[(ViceId::ANYUSER, "l"), (STAFF, "rlw"), (LAB, "wk"), (ALICE, "a")],
            &[(STAFF, "w"), (ViceId(77), "r")],
        );
        let alice = Subject::new(ALICE, [ViceId::ANYUSER, STAFF]).on_host_in([LAB]);
        let reasons = explain(&alice, &object(FileKind::Directory, &acl));
        let entry = Source::Entry;
        let read = of(&reasons, Rights::READ);
        assert_eq!((read.had, &read.given_by[..], &read.taken_by[..]), (true, &[entry(STAFF)][..], &[][..]));
        let write = of(&reasons, Rights::WRITE);
        assert!(write.had, "what is taken from the caller is not taken from its host");
        assert_eq!(write.given_by, [entry(STAFF), Source::HostEntry(LAB)]);
        assert_eq!(write.taken_by, [entry(STAFF)]);
        assert_eq!(of(&reasons, Rights::LOOKUP).given_by, [entry(STAFF), entry(ViceId::ANYUSER)]);
        let delete = of(&reasons, Rights::DELETE);
        assert!(!delete.had && delete.given_by.is_empty() && delete.taken_by.is_empty());
    }

    #[test]
    fn files_are_administered_by_their_owners_only() {
        let acl = list(&[(ViceId(6), "a")], &[]);
        let file = object(FileKind::File, &acl);
        let owner = of(&explain(&Subject::new(ALICE, []), &file), Rights::ADMINISTER);
        assert_eq!((owner.had, owner.given_by), (true, vec![Source::Owner]));
        let other = of(&explain(&Subject::new(ViceId(6), []), &file), Rights::ADMINISTER);
        assert_eq!((other.had, other.taken_by), (false, vec![Source::NotOwner]));
    }

    /// Every list of three entries with every caller of four ids, on the caller and its host, and on both kinds.
    #[test]
    fn the_reasons_add_up_to_the_rights() {
        let ids = [ALICE, STAFF, ViceId::ADMINISTRATORS];
        let words = ["", "rl", "wa"];
        for seed in 0..3u32.pow(6) {
            let digit = |place: u32| words[(seed / 3u32.pow(place) % 3) as usize];
            let of = |first: u32| ids.iter().zip(first..).map(|(id, place)| (*id, digit(place)));
            let acl = list(&of(0).collect::<Vec<_>>(), &of(3).collect::<Vec<_>>());
            for mask in 0..64u8 {
                let within = |first: u8| {
                    ids.into_iter()
                        .zip(first..)
                        .filter(move |(_, bit)| mask >> bit & 1 == 1)
                        .map(|(id, _)| id)
                };
                let subject = Subject::new(ViceId(8), within(0)).on_host_in(within(3));
                for kind in [FileKind::Directory, FileKind::File] {
                    let object = object(kind, &acl);
                    let reasons = explain(&subject, &object);
                    let had = reasons.iter().filter(|reason| reason.had);
                    let sum = had.fold(Rights::NONE, |rights, reason| rights | reason.right);
                    assert_eq!(sum, super::super::rights(&subject, &object), "{acl:?} {subject:?}");
                }
            }
        }
    }
}
