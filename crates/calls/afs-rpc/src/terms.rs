//! Terms of a token: what it says of its holder besides the name.

use crate::{Suspended, UnixTime};

/// The generation of a user's tokens: when the user's tokens were last revoked, in Unix seconds; 0 before that.
///
/// The protection database has the present one of each user. A token of the cell's login service carries that of its
/// making, a Kerberos ticket the second before its holder authenticated. What is older than the present one is revoked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct TokenGeneration(pub u64);

impl TokenGeneration {
    /// Of a token that a holder of the cell's key makes for itself: it ends with the key alone.
    pub const OF_KEY: Self = Self(u64::MAX);

    /// Of a Kerberos ticket whose holder authenticated in this second, in Unix seconds. A revocation in the same second
    /// ends it: nobody knows which of the two was first.
    #[must_use]
    pub fn of_ticket(authenticated: u64) -> Self {
        Self(authenticated.saturating_sub(1))
    }

    /// The one that a revocation at this time begins: later than every earlier one, whatever the clock shows.
    #[must_use]
    pub fn after(self, now: UnixTime) -> Self {
        Self(now.secs.max(self.0.saturating_add(1)))
    }
}

/// What a token says of its holder besides the name. Two callers that differ in it are two callers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Terms {
    /// The groups whose rights the holder does not have.
    pub suspended: Suspended,
    /// The generation of the token.
    pub generation: TokenGeneration,
}

impl Terms {
    /// Whether the token counts for a user whose tokens are of this generation now.
    #[must_use]
    pub fn count_in(&self, present: TokenGeneration) -> bool {
        self.generation >= present
    }
}

impl From<Suspended> for Terms {
    fn from(suspended: Suspended) -> Self {
        Self { suspended, generation: TokenGeneration::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revocation_ends_what_is_older_and_every_next_one_is_later() {
        let at = |secs| UnixTime { secs, nanos: 0 };
        let first = TokenGeneration::default().after(at(100));
        assert_eq!(
            [first, first.after(at(100)), first.after(at(50))].map(|generation| generation.0),
            [100, 101, 101]
        );
        let token = |generation| Terms { generation, ..Terms::default() };
        assert!(!token(TokenGeneration(99)).count_in(first) && token(first).count_in(first));
        assert!(Terms::default().count_in(TokenGeneration::default()));
    }

    #[test]
    fn a_ticket_of_the_second_of_a_revocation_counts_no_more() {
        let revoked = TokenGeneration::default().after(UnixTime { secs: 100, nanos: 0 });
        let counts = |second| {
            let generation = TokenGeneration::of_ticket(second);
            Terms { generation, ..Terms::default() }.count_in(revoked)
        };
        assert_eq!([99, 100, 101].map(counts), [false, false, true]);
        assert_eq!(TokenGeneration::of_ticket(0), TokenGeneration::default());
    }
}
