//! Owners of files: users of the cell shown as users of this machine, and back.
//!
//! The kernel keeps one set of attributes for everybody. So what is shown depends on the file only, never on who looks
//! (docs/decisions/2026-11-22-owners-shown.md).

use crate::options::Owner;
use afs_wire::ids::ViceId;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;

/// The group shown where none is known: `nogroup`.
pub const NO_GROUP: u32 = 65_534;
/// The user shown where none may be: `nobody`.
pub const NOBODY: u32 = 65_534;

/// An answer that may have to wait.
pub type AccountFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Which user of this machine a user of the cell is shown as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// User id.
    pub uid: u32,
    /// Group id of the user's files, where the server has no group for them.
    pub gid: u32,
    /// Whether that may be kept; no if the cell did not answer.
    pub is_settled: bool,
}

/// Users of the cell and users of this machine. Answers must not take longer than some seconds, whatever is away.
pub trait Accounts: fmt::Debug + Send + Sync + 'static {
    /// As whom a user of the cell is shown.
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account>;

    /// The user of the cell who is shown as this user of the machine; `None` if there is none.
    fn id(&self, uid: u32) -> AccountFuture<'_, Option<ViceId>>;
}

/// Ids are shown as they are, but for one.
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
}
