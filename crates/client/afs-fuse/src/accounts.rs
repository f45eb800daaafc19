//! Map between users of the home cell and users of this machine, for owners of files.
//!
//! The kernel keeps one set of attributes of a file for all users. The owner shown therefore depends on the file only,
//! not on the requester (docs/decisions/2026-11-22-owners-shown.md). A number of the machine is never one of the cell
//! (docs/decisions/2026-11-28-numbers-of-machines.md).

use crate::options::Owner;
use afs_wire::ids::ViceId;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;

/// Group id shown where the group is unknown: `nogroup`.
pub const NO_GROUP: u32 = 65_534;
/// User id shown where no other may be shown: `nobody`.
pub const NOBODY: u32 = 65_534;
/// Users of a cell who have no account here are shown as this number and their id.
pub const CELL_UIDS: u32 = 1 << 31;
/// What the server has as the group of a file whose group is 0 of a machine. Servers have 0 for a group that was never set.
const GROUP_ZERO: u32 = 1 << 31;

/// Future of a look-up that may have to wait.
pub type AccountFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// User of this machine as which a user of the cell is shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// User id.
    pub uid: u32,
    /// Group id of the user's files, where the server has no group for them.
    pub gid: u32,
    /// Whether the result may be kept; false if the cell did not reply.
    pub is_settled: bool,
}

/// Why a user of this machine is the owner of no file of the cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoOwner {
    /// The number is beyond [`ViceId::MACHINE_UID_MAX`], and stands for no user of the cell.
    OutOfRange,
    /// The name service of the machine, or the protection service of the cell, did not reply: nothing is known of the user.
    NoReply,
}

/// The number as which a user of a cell is shown who has no account here: in a range that no machine gives to its users.
/// `None` for ids that are no user's.
#[must_use]
pub fn uid_of_cell_user(id: ViceId) -> Option<u32> {
    let is_user = id.0 > 0 && id != ViceId::ANONYMOUS;
    // The last number means "no change" in chown(2).
    Some(id.0 as u32 | CELL_UIDS).filter(|uid| is_user && *uid != u32::MAX)
}

/// The user of a cell who is shown as this number; see [`uid_of_cell_user`].
#[must_use]
pub fn cell_user_of_uid(uid: u32) -> Option<ViceId> {
    let id = ViceId((uid & !CELL_UIDS) as i32);
    Some(id).filter(|id| uid_of_cell_user(*id) == Some(uid))
}

/// The group to show for the one that the server has. A group that was never set is shown as that of the owner.
pub(crate) fn shown_group(group: u32, owner: Account) -> u32 {
    match group {
        0 => owner.gid,
        GROUP_ZERO => 0,
        group => group,
    }
}

/// The group that the server is to have, so that `gid` is shown.
pub(crate) fn kept_group(gid: u32, owner: Account) -> u32 {
    match gid {
        gid if gid == owner.gid => 0,
        0 => GROUP_ZERO,
        gid => gid,
    }
}

/// Look-ups between users of the cell and users of this machine. A look-up must end within some seconds, also when a server
/// is unreachable.
pub trait Accounts: fmt::Debug + Send + Sync + 'static {
    /// User of this machine as which a user of the cell is shown.
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account>;

    /// Owner number of a file of this user of the machine: the user of the cell that is shown so, else the number of the machine.
    fn id(&self, uid: u32) -> AccountFuture<'_, Result<ViceId, NoOwner>>;

    /// User of this machine as which a user of another cell is shown. None who has an account here: a cell that this machine does not
    /// belong to must not say that a file is of one of its users, since programs trust files by their owner.
    fn foreign_account(&self, id: ViceId) -> AccountFuture<'_, Account>;
}

/// Map without accounts: numbers of machines are shown as they are, ids of the cell beyond [`CELL_UIDS`], except that of one owner.
#[derive(Clone, Copy, Default, Debug)]
pub struct NumericAccounts(pub Option<Owner>);

impl Accounts for NumericAccounts {
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        let mine = self.0.filter(|owner| owner.vice == id).map(|owner| (owner.uid, owner.gid));
        let number = || id.machine_uid().or(uid_of_cell_user(id)).map(|uid| (uid, NO_GROUP));
        let (uid, gid) = mine.or_else(number).unwrap_or((NOBODY, NO_GROUP));
        Box::pin(ready(Account { uid, gid, is_settled: true }))
    }

    fn id(&self, uid: u32) -> AccountFuture<'_, Result<ViceId, NoOwner>> {
        let mine = self.0.filter(|owner| owner.uid == uid).map(|owner| owner.vice);
        let id = mine.or(cell_user_of_uid(uid)).or(ViceId::of_machine(uid));
        Box::pin(ready(id.ok_or(NoOwner::OutOfRange)))
    }

    fn foreign_account(&self, _: ViceId) -> AccountFuture<'_, Account> {
        // Which users there are is not known here.
        Box::pin(ready(Account { uid: NOBODY, gid: NO_GROUP, is_settled: true }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_the_machine_and_an_id_of_the_cell_are_never_shown_alike() {
        let numbers = [0, 1, 2, 999, 1000, 65_534, 2_000_200_000, ViceId::MACHINE_UID_MAX];
        for uid in numbers {
            let kept = ViceId::of_machine(uid).unwrap();
            assert_eq!((kept.machine_uid(), uid_of_cell_user(kept)), (Some(uid), None));
            assert_eq!(cell_user_of_uid(uid), None);
        }
        for id in [1, 2, 1000, 65_534, i32::MAX - 1].map(ViceId) {
            let shown = uid_of_cell_user(id).unwrap();
            assert_eq!((cell_user_of_uid(shown), id.machine_uid()), (Some(id), None));
            assert_eq!(ViceId::of_machine(shown), None);
        }
        for group in [-1, -204, -16_777_216].map(ViceId) {
            assert_eq!((group.machine_uid(), uid_of_cell_user(group)), (None, None));
        }
        assert_eq!(uid_of_cell_user(ViceId(i32::MAX)), None);
        assert_eq!((cell_user_of_uid(u32::MAX), ViceId::of_machine(u32::MAX)), (None, None));
    }

    #[test]
    fn every_group_of_a_machine_can_be_kept() {
        for owner in [0, 1000, NO_GROUP].map(|gid| Account { uid: gid, gid, is_settled: true }) {
            for gid in [0, 5, 1000, NO_GROUP, u32::MAX - 1] {
                assert_eq!(shown_group(kept_group(gid, owner), owner), gid);
            }
        }
    }
}
