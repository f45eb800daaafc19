//! Map between users of the home cell and users of this machine, for owners of files.
//!
//! The kernel keeps one set of attributes of a file for all users. The owner shown therefore depends on the file only,
//! not on the requester (docs/decisions/2026-11-22-owners-shown.md).

use crate::options::Owner;
use afs_wire::ids::ViceId;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;

/// Group id shown where the group is unknown: `nogroup`.
pub const NO_GROUP: u32 = 65_534;
/// User id shown where no other may be shown: `nobody`.
pub const NOBODY: u32 = 65_534;

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

/// Look-ups between users of the cell and users of this machine. A look-up must end within some seconds, also when a server
/// is unreachable.
pub trait Accounts: fmt::Debug + Send + Sync + 'static {
    /// User of this machine as which a user of the cell is shown.
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account>;

    /// User of the cell that is shown as this user of the machine; `None` without one.
    fn id(&self, uid: u32) -> AccountFuture<'_, Option<ViceId>>;

    /// User of this machine as which a user of another cell is shown. None who has an account here: a cell that this machine does not
    /// belong to must not say that a file is of one of its users, since programs trust files by their owner.
    fn foreign_account(&self, id: ViceId) -> AccountFuture<'_, Account>;
}

/// Map that shows ids unchanged, except that of one owner.
#[derive(Clone, Copy, Default, Debug)]
pub struct NumericAccounts(pub Option<Owner>);

impl Accounts for NumericAccounts {
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        let mine = self.0.filter(|owner| owner.vice == id);
        let (uid, gid) = mine.map_or((id.0 as u32, NO_GROUP), |owner| (owner.uid, owner.gid));
        Box::pin(ready(Account { uid, gid, is_settled: true }))
    }

    fn id(&self, uid: u32) -> AccountFuture<'_, Option<ViceId>> {
        let mine = self.0.filter(|owner| owner.uid == uid).map(|owner| owner.vice);
        Box::pin(ready(mine.or(i32::try_from(uid).ok().map(ViceId))))
    }

    fn foreign_account(&self, _: ViceId) -> AccountFuture<'_, Account> {
        // Which users there are is not known here.
        Box::pin(ready(Account { uid: NOBODY, gid: NO_GROUP, is_settled: true }))
    }
}
