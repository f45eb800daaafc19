//! Suspended groups inside a token: an identity of a kind of our own behind the user's name (`docs/protocol/rxgk.md`
//! "4. Tokens").
//!
//! A server that does not know the kind refuses the token, because it has more than one identity: it never takes the
//! holder for a user with all groups.

use afs_rpc::{Principal, Suspended, Terms};
use afs_rx::SecurityError;
use afs_wire::ids::ViceId;
use afs_wire::xdr::{DecodeError, Encode, Reader};

use super::{AuthName, code};

/// Kind of the identity.
pub(super) const KIND_SUSPENDED: i32 = 0x414e_4401;

/// The identity that stands for suspended groups; `None` if there are none.
pub(super) fn identity(suspended: &Suspended) -> Option<AuthName> {
    let mut data = Vec::with_capacity(4 + 4 * suspended.groups().len());
    (suspended.groups().len() as u32).encode(&mut data);
    suspended.groups().iter().for_each(|group| group.encode(&mut data));
    (!suspended.is_empty()).then_some(AuthName { kind: KIND_SUSPENDED, data, display: Vec::new() })
}

/// A user without the groups in the data of such an identity.
pub(super) fn of(principal: Principal, data: &[u8]) -> Result<Principal, SecurityError> {
    let suspended = decode(data).ok().flatten().ok_or(code::INCONSISTENCY)?;
    match principal {
        Principal::Named { name, cell: None, terms } => {
            Ok(Principal::Named { name, cell: None, terms: Terms { suspended, ..terms } })
        }
        // Tokens with suspended groups are made for users of the cell alone.
        _ => Err(code::INCONSISTENCY),
    }
}

/// The groups, which are there, sorted, each once, and such that they can be suspended.
fn decode(data: &[u8]) -> Result<Option<Suspended>, DecodeError> {
    let mut reader = Reader::new(data);
    let count = reader.count(Suspended::MAX)?;
    let groups = (0..count).map(|_| reader.i32().map(ViceId)).collect::<Result<Vec<_>, _>>()?;
    reader.finish()?;
    let suspended = Suspended::new(groups.iter().copied()).ok();
    Ok(suspended.filter(|suspended| !suspended.is_empty() && suspended.groups() == groups))
}

#[cfg(test)]
mod tests {
    use super::super::auth_name::holder;
    use super::*;
    use crate::names::LocalNames;

    fn holder_of(identities: &[AuthName]) -> Result<Principal, SecurityError> {
        holder(identities, &LocalNames::of_cell("example.org"))
    }

    fn suspended(ids: &[i32]) -> Suspended {
        Suspended::new(ids.iter().copied().map(ViceId)).unwrap()
    }

    #[test]
    fn the_holder_of_a_token_is_without_the_groups_in_it() {
        let groups = suspended(&[-204, -300]);
        let found = holder_of(&[AuthName::krb4("alice"), identity(&groups).unwrap()]).unwrap();
        assert_eq!((found.to_string(), found.suspended()), ("alice".into(), groups));
        assert_eq!(identity(&suspended(&[])), None);
        assert!(holder_of(&[AuthName::krb4("alice")]).unwrap().suspended().is_empty());
    }

    #[test]
    fn what_is_no_list_of_groups_behind_one_user_of_the_cell_is_refused() {
        let (alice, list) = (AuthName::krb4("alice"), identity(&suspended(&[-300, -204])).unwrap());
        let with = |data: Vec<u8>| [alice.clone(), AuthName { data, ..list.clone() }];
        let words = |words: &[i32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let cut = |n: usize| list.data[..n].to_vec();
        for data in [
            words(&[0]),
            words(&[1, 5]),
            words(&[1, -101]),
            words(&[1, -102]),
            words(&[2, -204, -300]),
            words(&[2, -300, -300]),
            words(&[1, -300, -204]),
            words(&[3, -300, -204]),
            cut(0),
            cut(7),
            cut(8),
            [words(&[33]), words(&(-533..-500).collect::<Vec<_>>())].concat(),
        ] {
            assert_eq!(holder_of(&with(data.clone())), Err(code::INCONSISTENCY), "{data:?}");
        }
        for identities in [
            vec![list.clone(), alice.clone()],
            vec![alice.clone(), list.clone(), list.clone()],
            vec![AuthName::krb4("bob@OTHER.ORG"), list.clone()],
            vec![alice.clone(), AuthName { kind: 0x414e_4402, ..list.clone() }],
        ] {
            assert_eq!(holder_of(&identities), Err(code::INCONSISTENCY), "{identities:?}");
        }
        assert_eq!(holder_of(&[list]), Err(code::NOT_AUTHENTICATED));
    }
}
