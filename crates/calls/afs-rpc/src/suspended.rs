//! Sorted set of the groups whose membership a caller has suspended.

use std::sync::Arc;

use afs_wire::ids::ViceId;

/// Groups that a token leaves out: its holder has none of the rights of being in them, directly or through nested
/// groups. Sorted, without repetitions; usually empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Suspended(Arc<[ViceId]>);

/// Why a set of groups cannot be suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotSuspended {
    /// An id that is no group's, or is of a group that every caller or every user is in.
    #[error("membership in this group cannot be suspended")]
    Group(ViceId),
    /// More than [`Suspended::MAX`].
    #[error("at most {} groups can be suspended", Suspended::MAX)]
    TooMany,
}

impl Suspended {
    /// Most groups in a set.
    pub const MAX: usize = 32;

    /// The set of these groups.
    ///
    /// # Errors
    /// One is no group, or is `system:anyuser` or `system:authuser`; or there are too many.
    pub fn new(groups: impl IntoIterator<Item = ViceId>) -> Result<Self, NotSuspended> {
        let mut groups: Vec<ViceId> = groups.into_iter().collect();
        groups.sort_unstable();
        groups.dedup();
        if let Some(other) = groups.iter().find(|id| !Self::may_have(**id)) {
            return Err(NotSuspended::Group(*other));
        }
        if groups.len() > Self::MAX { Err(NotSuspended::TooMany) } else { Ok(Self(groups.into())) }
    }

    /// Whether membership in a group can be suspended: not in those that every caller or every user is in.
    #[must_use]
    pub fn may_have(group: ViceId) -> bool {
        group.is_group() && !matches!(group, ViceId::ANYUSER | ViceId::AUTHUSER)
    }

    /// Whether nothing is suspended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The groups, sorted.
    #[must_use]
    pub fn groups(&self) -> &[ViceId] {
        &self.0
    }

    /// Whether membership in this group is suspended.
    #[must_use]
    pub fn has(&self, group: ViceId) -> bool {
        self.0.binary_search(&group).is_ok()
    }

    /// This set and another one together.
    ///
    /// # Errors
    /// There are too many.
    pub fn and(&self, other: &Self) -> Result<Self, NotSuspended> {
        Self::new(self.0.iter().chain(&*other.0).copied())
    }

    /// This set without the groups of another one.
    #[must_use]
    pub fn except(&self, other: &Self) -> Self {
        Self(self.0.iter().copied().filter(|group| !other.has(*group)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[i32]) -> Suspended {
        Suspended::new(ids.iter().copied().map(ViceId)).unwrap()
    }

    #[test]
    fn a_set_is_of_groups_that_one_can_leave() {
        for bad in [5, 0, -101, -102] {
            assert_eq!(Suspended::new([ViceId(bad)]), Err(NotSuspended::Group(ViceId(bad))));
        }
        assert_eq!(Suspended::new((1..=33).map(|n| ViceId(-500 - n))), Err(NotSuspended::TooMany));
        let both = set(&[-204, -300]);
        assert_eq!(set(&[-300, -204, -300]), both);
        assert!(both.has(ViceId(-204)) && !both.has(ViceId(-205)) && set(&[]).is_empty());
        assert_eq!(
            (set(&[-204]).and(&set(&[-300])), both.except(&set(&[-300, -7]))),
            (Ok(both), set(&[-204]))
        );
    }
}
