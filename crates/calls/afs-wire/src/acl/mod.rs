//! Access lists of directories, in three forms.
//!
//! | Form | Where | Here |
//! | --- | --- | --- |
//! | ids and rights | inside servers | [`Acl`] |
//! | text with names | FetchACL, StoreACL, tools | [`NamedAcl`] |
//! | 192-byte block | dumps | [`Acl::to_block`], [`Acl::from_block`] |
//!
//! Source: `docs/protocol/fileserver.md` "5. Identity, rights bits, ACLs".

mod block;
mod named;

pub use block::{BLOCK_LEN, BadBlock};
pub use named::{BadAcl, NAME_MAX, NamedAcl, NamedEntry, Names, WellKnownNames};

use crate::ids::{Rights, ViceId};

/// Most entries of an access list, positive and negative together.
pub const ENTRIES_MAX: usize = 20;

/// An access list. Only directories have one; that of its directory applies to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Acl {
    /// Rights granted, in order of the ids.
    pub positive: Vec<(ViceId, Rights)>,
    /// Rights denied, in order of the ids.
    pub negative: Vec<(ViceId, Rights)>,
}

/// More entries than an access list can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} entries are too many for an access list: at most 20")]
pub struct TooManyEntries(pub usize);

impl Acl {
    /// Sorts the entries.
    ///
    /// # Errors
    /// [`TooManyEntries`] over [`ENTRIES_MAX`].
    pub fn new(
        mut positive: Vec<(ViceId, Rights)>,
        mut negative: Vec<(ViceId, Rights)>,
    ) -> Result<Self, TooManyEntries> {
        let total = positive.len() + negative.len();
        if total > ENTRIES_MAX {
            return Err(TooManyEntries(total));
        }
        positive.sort_by_key(|entry| entry.0);
        negative.sort_by_key(|entry| entry.0);
        Ok(Self { positive, negative })
    }

    /// The access list of a new volume's root directory: every right for administrators.
    pub fn of_new_volume() -> Self {
        Self { positive: vec![(ViceId::ADMINISTRATORS, Rights::ALL)], negative: Vec::new() }
    }

    /// The rights that this list grants to a subject with all of `ids` (in any order): rights granted to any of them,
    /// without rights denied to any of them.
    ///
    /// The additional rules of servers (administrators, the caller's host, owners) are not applied here.
    pub fn rights(&self, ids: &[ViceId]) -> Rights {
        of_any(&self.positive, ids) & !of_any(&self.negative, ids)
    }
}

fn of_any(entries: &[(ViceId, Rights)], ids: &[ViceId]) -> Rights {
    let matching = entries.iter().filter(|(id, _)| ids.contains(id));
    matching.fold(Rights::NONE, |rights, (_, more)| rights | *more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_given_and_taken_away() {
        let acl = Acl::new(
            vec![(ViceId(7), Rights::ALL), (ViceId::ANYUSER, Rights::LOOKUP)],
            vec![(ViceId(-300), Rights::WRITE | Rights::DELETE)],
        )
        .unwrap();
        assert_eq!(acl.positive[0].0, ViceId::ANYUSER, "in order");
        assert_eq!(acl.rights(&[ViceId::ANYUSER]), Rights::LOOKUP);
        assert_eq!(acl.rights(&[ViceId(7), ViceId::ANYUSER]), Rights::ALL);
        assert_eq!(acl.rights(&[ViceId(7), ViceId(-300)]).to_string(), "rlika");
        assert_eq!(acl.rights(&[]), Rights::NONE);
    }

    #[test]
    fn twenty_entries_and_no_more() {
        let entries = |n| vec![(ViceId(1), Rights::READ); n];
        assert!(Acl::new(entries(10), entries(10)).is_ok());
        assert_eq!(Acl::new(entries(20), entries(1)), Err(TooManyEntries(21)));
    }
}
