//! Bounded table of what is known of rooms, by token and volume: the drives at which the last one was, or that none is given.

use std::collections::BTreeMap;
use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::ids::VolumeId;

use super::super::super::offer::Offer;
use crate::identity::TokenId;

/// Most volumes of which something is known.
const VOLUMES_MAX: usize = 256;
/// How long no room is asked for in a volume whose bytes do not travel that way.
const NONE_FOR: Duration = Duration::from_secs(180);
/// How long none is asked for after another failure.
const FAILED_FOR: Duration = Duration::from_secs(30);

/// How long the next room is taken to be at the same drives as the last one: the file server leaves a drive out that was away, and its
/// administrator may name others.
const AT_FOR: Duration = Duration::from_secs(60);

/// For whom rooms are, and in which volume.
pub(super) type Key = (TokenId, VolumeId);

/// The table.
#[derive(Default)]
pub(in super::super) struct Rooms(BTreeMap<Key, Known>);

enum Known {
    At(Vec<Offer>, Instant),
    NoneUntil(Instant),
}

/// What is known of a volume.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Before {
    Nothing,
    /// The last room was at these drives, and the next one is.
    At(Vec<Offer>),
    /// The last room was at these drives; new data may go elsewhere by now.
    WasAt(Vec<Offer>),
    /// None is to be asked for now.
    None,
}

/// Why none is asked for, for a while.
#[derive(Clone, Copy)]
pub(super) enum Why {
    /// The volume has none.
    Volume,
    /// What was asked for or staged was refused.
    Failed,
}

impl Rooms {
    pub(super) fn before(&self, key: Key, now: Instant) -> Before {
        match self.0.get(&key) {
            Some(Known::At(offers, until)) if now < *until => Before::At(offers.clone()),
            Some(Known::At(offers, _)) => Before::WasAt(offers.clone()),
            Some(Known::NoneUntil(until)) if now < *until => Before::None,
            Some(Known::NoneUntil(_)) | None => Before::Nothing,
        }
    }

    /// A room was given at drives.
    pub(super) fn given(&mut self, key: Key, offers: Vec<Offer>, now: Instant) {
        self.note(key, Known::At(offers, now + AT_FOR));
    }

    /// None was given, or what was staged there came to nothing.
    pub(super) fn none(&mut self, key: Key, why: Why, now: Instant) {
        let pause = match why {
            Why::Volume => NONE_FOR,
            Why::Failed => FAILED_FOR,
        };
        self.note(key, Known::NoneUntil(now + pause));
    }

    fn note(&mut self, key: Key, known: Known) {
        if self.0.len() >= VOLUMES_MAX && !self.0.contains_key(&key) {
            self.0.pop_first();
        }
        self.0.insert(key, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_rooms_are_is_asked_again_after_a_while() {
        let (mut rooms, now) = (Rooms::default(), Instant::ZERO + Duration::from_secs(1000));
        let key = (TokenId(1), VolumeId(1));
        rooms.given(key, Vec::new(), now);
        let at = |secs| now + Duration::from_secs(secs);
        assert_eq!(
            [rooms.before(key, at(59)), rooms.before(key, at(60))],
            [Before::At(Vec::new()), Before::WasAt(Vec::new())]
        );
    }

    #[test]
    fn a_volume_without_rooms_is_left_alone_for_a_while_and_the_table_is_bounded() {
        let (mut rooms, now) = (Rooms::default(), Instant::ZERO + Duration::from_secs(1000));
        let key = |volume| (TokenId(1), VolumeId(volume));
        assert_eq!(rooms.before(key(1), now), Before::Nothing);
        rooms.none(key(1), Why::Volume, now);
        rooms.none(key(2), Why::Failed, now);
        let at = |secs| now + Duration::from_secs(secs);
        assert_eq!(
            [rooms.before(key(1), at(179)), rooms.before(key(1), at(180))],
            [Before::None, Before::Nothing]
        );
        assert_eq!(
            [rooms.before(key(2), at(29)), rooms.before(key(2), at(30))],
            [Before::None, Before::Nothing]
        );
        (0..1000).for_each(|volume| rooms.none(key(volume), Why::Volume, now));
        assert_eq!(rooms.0.len(), VOLUMES_MAX);
    }
}
