//! Set of the users who may be in a directory by what the kernel keeps.

use crate::api::TokenOwner;

/// Users remembered for a directory; with more it counts as one that anyone may be in.
const OWNERS_MAX: usize = 8;

/// Who was led into a directory. The kernel keeps one set of entries for all users, and leads whoever asks it along
/// those that it keeps: users are noticed only where an entry is not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Admitted {
    /// These alone.
    Owners(Vec<TokenOwner>),
    /// Users who were not noticed as well.
    Anyone,
}

impl Default for Admitted {
    fn default() -> Self {
        Admitted::Owners(Vec::new())
    }
}

impl Admitted {
    /// One user.
    pub fn one(owner: TokenOwner) -> Self {
        Admitted::Owners(vec![owner])
    }

    /// Adds users. Returns true if some are new.
    pub fn add(&mut self, more: &Admitted) -> bool {
        let Admitted::Owners(known) = self else { return false };
        let new: Vec<TokenOwner> = match more {
            Admitted::Owners(more) => more.iter().filter(|owner| !known.contains(owner)).copied().collect(),
            Admitted::Anyone => {
                *self = Admitted::Anyone;
                return true;
            }
        };
        let is_grown = !new.is_empty();
        known.extend(new);
        if known.len() > OWNERS_MAX {
            *self = Admitted::Anyone;
        }
        is_grown
    }

    /// True if there are users, and `may` is true of each.
    pub fn all(&self, may: impl FnMut(&TokenOwner) -> bool) -> bool {
        match self {
            Admitted::Owners(owners) => !owners.is_empty() && owners.iter().all(may),
            Admitted::Anyone => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: u32) -> Admitted {
        Admitted::one(TokenOwner::Uid(uid))
    }

    #[test]
    fn users_are_counted_once_and_too_many_are_anyone() {
        let mut admitted = Admitted::default();
        assert!(!admitted.all(|_| true), "nobody was noticed: that says nothing");
        assert!(admitted.add(&owner(1)) && !admitted.add(&owner(1)) && admitted.add(&owner(2)));
        assert!(admitted.all(|owner| owner.uid() < 3) && !admitted.all(|owner| owner.uid() == 1));
        (3..=OWNERS_MAX as u32 + 1).for_each(|uid| assert!(admitted.add(&owner(uid))));
        assert_eq!(admitted, Admitted::Anyone);
        assert!(!admitted.add(&owner(99)) && !admitted.all(|_| true));
        let mut other = owner(1);
        assert!(other.add(&admitted) && other == Admitted::Anyone);
    }
}
