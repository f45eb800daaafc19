//! A room as the file server tells it, checked before anything is sent to a drive.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use afs_datapath::capability::Group;
use afs_rpc::Instant;
use afs_wire::fs::{self, COMMIT_SLOT_LEN};
use afs_wire::xdr::Fixed;

use super::super::super::capabilities::{Given, Use};
use super::super::super::grants::given;
use super::super::super::offer::Offer;
use super::super::server_drives::ServerDrives;
use crate::calls::Target;

/// What a file server says of a room.
pub(super) struct RoomTold {
    pub drives: Vec<DriveTold>,
    pub rounds: Rounds,
    pub number: Fixed<16>,
}

/// What it says of one of its drives.
pub(super) struct DriveTold {
    pub offer: Offer,
    pub given: Given,
    pub drive: Fixed<16>,
}

/// The drives for the chunks of each slot, in turn: none is empty, nor is the list.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Rounds(Vec<Vec<usize>>);

impl Rounds {
    /// `None` for what names no drives, one twice for a chunk, or one of more than there are.
    fn new(told: &[fs::RoomRound], drives: usize) -> Option<Self> {
        let round = |round: &fs::RoomRound| {
            let places: Option<Vec<_>> =
                round.iter().map(|at| usize::try_from(*at).ok().filter(|at| *at < drives)).collect();
            places.filter(|places| {
                let different: BTreeSet<_> = places.iter().collect();
                !places.is_empty() && different.len() == places.len()
            })
        };
        let rounds: Vec<_> = told.iter().map(round).collect::<Option<_>>()?;
        (!rounds.is_empty()).then_some(Self(rounds))
    }

    /// The drives for a chunk at a position of the file, the one that is its own first.
    pub fn at(&self, position: u64) -> &[usize] {
        let slot = position / COMMIT_SLOT_LEN;
        self.0.get((slot % self.0.len() as u64) as usize).map_or(&[], Vec::as_slice)
    }

    /// Chunks one after the other that have different drives as their own.
    pub fn width(&self) -> usize {
        self.0.len()
    }
}

impl ServerDrives {
    /// What a reply says; `None` for a drive that cannot be used from here, and what permits less than was asked for.
    pub(super) fn told(
        &self,
        reply: &fs::GetRoomReply,
        target: &Target,
        (asked, bytes): (Instant, u64),
    ) -> Option<RoomTold> {
        let drive = |told: &fs::LayoutDrive| {
            let offer = Offer::of_layout(told, target.address.peer.ip(), &self.common.config)?;
            let given = given(&told.capability, Use::Write, asked)?;
            let capability = &given.capability;
            let is_right = capability.drive == offer.drive
                && matches!(capability.group, Group::Staged(..))
                && capability.range.len() >= bytes;
            let number = self.given.fetch_add(1, Ordering::Relaxed);
            is_right.then_some(DriveTold { offer, given: Given { number, ..given }, drive: told.drive })
        };
        let drives: Vec<_> = reply.drives.iter().map(drive).collect::<Option<_>>()?;
        let rounds = Rounds::new(&reply.rounds, drives.len())?;
        Some(RoomTold { drives, rounds, number: reply.room })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(told: &[&[u32]], drives: usize) -> Option<Rounds> {
        let told: Vec<_> = told.iter().map(|round| fs::RoomRound::first_of(round.iter().copied())).collect();
        Rounds::new(&told, drives)
    }

    #[test]
    fn slots_take_their_rounds_in_turn() {
        let rounds = rounds(&[&[0, 1], &[1, 2], &[2, 0]], 3).unwrap();
        let at = |slot: u64| rounds.at(slot * COMMIT_SLOT_LEN + 5).to_vec();
        assert_eq!([at(0), at(1), at(2), at(4)], [[0, 1], [1, 2], [2, 0], [1, 2]]);
        assert_eq!(rounds.at(u64::MAX), [0, 1]);
    }

    #[test]
    fn what_names_no_drive_or_one_twice_is_no_room() {
        for wrong in [&[][..], &[&[][..]], &[&[0][..], &[]], &[&[1][..]], &[&[0, 0][..]], &[&[u32::MAX][..]]]
        {
            assert_eq!(rounds(wrong, 1), None, "{wrong:?}");
        }
        assert_eq!(rounds(&[&[0]], 0), None);
    }
}
