//! Map of owners of files to users of this machine: token holders, then accounts of the same name, then numbers.

use crate::mount::local_accounts::{AccountLookup, LocalUser, by_name, by_uid};
use afs_fuse::{
    Account, AccountFuture, Accounts, NO_GROUP, NOBODY, NoOwner, Owner, cell_user_of_uid, uid_of_cell_user,
};
use afs_rpc::{Connection, EnvExt, EnvRef, Instant};
use afs_venus::{TokenInfo, Venus};
use afs_wire::ids::{CellName, ViceId};
use afs_wire::pt::{IdToName, Ids, NameChars, NameToId, Names};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Time-out of a call to the protection service.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a result is kept.
const GOOD_FOR: Duration = Duration::from_secs(3600);
/// How long it is kept that the protection service did not reply, and whom it has for a user of this machine: who is made a user of
/// the cell becomes the owner of what is given to him then.
const FRESH_FOR: Duration = Duration::from_secs(10);
/// Most results kept; beyond that all are dropped.
const KEPT_MAX: usize = 4096;
/// Lowest user id of an ordinary account.
const FIRST_USER: u32 = 1000;

/// Accounts of this machine for the users of a mount's cell.
pub struct CellAccounts {
    env: EnvRef,
    venus: Arc<Venus>,
    /// The cell. Names of users, and of holders of tokens, are names in it.
    cell: CellName,
    /// Protection servers, in the order in which they are tried.
    servers: Vec<Connection>,
    /// A user of the cell that is always shown as the user who mounted.
    owner: Option<Owner>,
    kept: Mutex<AccountCache>,
}

#[derive(Default)]
struct AccountCache {
    /// Version of the tokens at which these results were found.
    tokens: u64,
    accounts: HashMap<ViceId, (Account, Instant)>,
    /// Owner numbers of users of this machine: `tar` and `rsync` ask for one with each file.
    ids: HashMap<u32, (ViceId, Instant)>,
}

/// Result of a look-up at the protection service.
enum Lookup<T> {
    Known(T),
    NotFound,
    Nothing,
}

impl AccountCache {
    /// Empties it after a change of the tokens, and when it is full.
    fn empty_if_due(&mut self, tokens: u64) {
        if self.tokens != tokens || self.accounts.len().max(self.ids.len()) >= KEPT_MAX {
            *self = AccountCache { tokens, ..AccountCache::default() };
        }
    }
}

impl fmt::Debug for CellAccounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellAccounts").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl CellAccounts {
    /// Looks up names at `servers`, the cell's protection servers, and tokens in `venus`.
    #[must_use]
    pub fn new(
        env: EnvRef,
        venus: Arc<Venus>,
        cell: CellName,
        servers: Vec<Connection>,
        owner: Option<Owner>,
    ) -> Self {
        Self { env, venus, cell, servers, owner, kept: Mutex::default() }
    }

    /// The results that are good for the tokens of now.
    fn kept(&self) -> MutexGuard<'_, AccountCache> {
        let mut kept = self.kept.lock();
        kept.empty_if_due(self.venus.token_changes());
        kept
    }

    fn known(&self, id: ViceId) -> Option<Account> {
        let (account, until) = *self.kept().accounts.get(&id)?;
        (self.env.now() < until).then_some(account)
    }

    fn known_id(&self, uid: u32) -> Option<ViceId> {
        let (id, until) = *self.kept().ids.get(&uid)?;
        (self.env.now() < until).then_some(id)
    }

    async fn find(&self, id: ViceId) -> Account {
        let tokens = self.venus.token_changes();
        let account = match self.name(id).await {
            Lookup::Known(name) => self.named(id, &name).await,
            Lookup::NotFound => self.numbered(id).await,
            Lookup::Nothing => Account { uid: NOBODY, gid: NO_GROUP, is_settled: false },
        };
        let until = self.env.now() + if account.is_settled { GOOD_FOR } else { FRESH_FOR };
        let mut kept = self.kept();
        if kept.tokens == tokens {
            kept.accounts.insert(id, (account, until));
        }
        account
    }

    /// Account for a user of the cell with a name: that of a token holder, else that with the same name.
    async fn named(&self, id: ViceId, name: &str) -> Account {
        let account = |user: LocalUser| Account { uid: user.uid, gid: user.gid, is_settled: true };
        let same_name = self.local(name.to_owned(), by_name).await;
        let same_uid = same_name.user().map(|user| user.uid);
        if let Some(uid) = self.holder(name, same_uid) {
            return match self.local(uid, by_uid).await {
                AccountLookup::User(user) => account(user),
                _ => Account { uid, gid: uid, is_settled: true },
            };
        }
        match same_name {
            // A system account does not match by name: the cell does not name the accounts of this machine.
            AccountLookup::User(user) if user.uid >= FIRST_USER && user.uid != NOBODY => account(user),
            _ => self.numbered(id).await,
        }
    }

    /// A user of a cell who is known by number only. Accounts of this machine in the range of these numbers are not pretended to own
    /// the file.
    async fn numbered(&self, id: ViceId) -> Account {
        let nobody = Account { uid: NOBODY, gid: NO_GROUP, is_settled: true };
        let Some(uid) = uid_of_cell_user(id) else { return nobody };
        match self.local(uid, by_uid).await {
            AccountLookup::NotFound => Account { uid, ..nobody },
            _ => nobody,
        }
    }

    /// A number of a machine, which administrators of the cell alone can have given to a file. Machines show it alike; but what is
    /// called a file of root or of the system is shown as one only where root takes part in the cell.
    fn of_machine(&self, uid: u32) -> Account {
        let has_root = || {
            let mounted = self.owner.is_some_and(|owner| owner.uid == 0);
            mounted || self.tokens().any(|token| token.owner.uid() == 0)
        };
        let uid = if uid >= FIRST_USER || has_root() { uid } else { NOBODY };
        Account { uid, gid: NO_GROUP, is_settled: true }
    }

    async fn local<K: Send + 'static>(&self, key: K, look: fn(K) -> AccountLookup) -> AccountLookup {
        self.env.run_blocking(move || look(key)).await.unwrap_or(AccountLookup::Unknown)
    }

    async fn name(&self, id: ViceId) -> Lookup<String> {
        for server in &self.servers {
            let request = IdToName { ids: Ids::first_of([id]) };
            if let Ok(Ok(reply)) = self.env.timeout(PATIENCE, server.call(&request)).await {
                let name = reply.names.iter().next().map(ToString::to_string);
                // A service replies the number for an id without a name.
                return match name.filter(|name| name.parse::<i64>().is_err()) {
                    Some(name) => Lookup::Known(name),
                    None => Lookup::NotFound,
                };
            }
        }
        Lookup::Nothing
    }

    async fn id_of(&self, name: &str) -> Lookup<ViceId> {
        let Ok(chars) = NameChars::new(name.to_ascii_lowercase().as_bytes()) else { return Lookup::NotFound };
        for server in &self.servers {
            let request = NameToId { names: Names::first_of([chars]) };
            if let Ok(Ok(reply)) = self.env.timeout(PATIENCE, server.call(&request)).await {
                let id = reply.ids.iter().next().copied();
                return match id.filter(|id| *id != ViceId::ANONYMOUS) {
                    Some(id) => Lookup::Known(id),
                    None => Lookup::NotFound,
                };
            }
        }
        Lookup::Nothing
    }

    /// The tokens for the cell: a name in another cell says nothing here.
    fn tokens(&self) -> impl Iterator<Item = TokenInfo> {
        self.venus.tokens().into_iter().filter(|token| token.cell == self.cell)
    }

    /// The user of this machine who holds a token of this name: the one whose account has the name, else the lowest id.
    fn holder(&self, name: &str, same_name: Option<u32>) -> Option<u32> {
        let of_name = self.tokens().filter(|token| token.label.eq_ignore_ascii_case(name));
        let uids: Vec<u32> = of_name.map(|token| token.owner.uid()).collect();
        same_name.filter(|uid| uids.contains(uid)).or(uids.into_iter().min())
    }

    /// The names in the cell of a user's tokens.
    fn labels_of(&self, uid: u32) -> Vec<String> {
        self.tokens().filter(|token| token.owner.uid() == uid).map(|token| token.label).collect()
    }

    async fn find_id(&self, uid: u32) -> Result<ViceId, NoOwner> {
        let mut names: Vec<String> = self.labels_of(uid);
        match self.local(uid, by_uid).await {
            AccountLookup::User(user) => names.push(user.name),
            AccountLookup::NotFound => {}
            AccountLookup::Unknown => return Err(NoOwner::NoReply),
        }
        for name in names {
            match self.id_of(&name).await {
                // Without a reply a user of the cell could be taken for a number of the machine.
                Lookup::Nothing => return Err(NoOwner::NoReply),
                Lookup::Known(id) if self.is_shown_as(id, uid).await? => return Ok(id),
                Lookup::Known(_) | Lookup::NotFound => {}
            }
        }
        match cell_user_of_uid(uid) {
            Some(id) if self.is_shown_as(id, uid).await? => Ok(id),
            Some(_) => Err(NoOwner::OutOfRange),
            None => ViceId::of_machine(uid).ok_or(NoOwner::OutOfRange),
        }
    }

    async fn is_shown_as(&self, id: ViceId, uid: u32) -> Result<bool, NoOwner> {
        let account = self.account(id).await;
        if account.is_settled { Ok(account.uid == uid) } else { Err(NoOwner::NoReply) }
    }
}

impl Accounts for CellAccounts {
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        Box::pin(async move {
            if let Some(owner) = self.owner.filter(|owner| owner.vice == id) {
                return Account { uid: owner.uid, gid: owner.gid, is_settled: true };
            }
            if let Some(uid) = id.machine_uid() {
                return self.of_machine(uid);
            }
            match self.known(id) {
                Some(account) => account,
                None => self.find(id).await,
            }
        })
    }

    fn id(&self, uid: u32) -> AccountFuture<'_, Result<ViceId, NoOwner>> {
        Box::pin(async move {
            if let Some(owner) = self.owner.filter(|owner| owner.uid == uid) {
                return Ok(owner.vice);
            }
            if let Some(id) = self.known_id(uid) {
                return Ok(id);
            }
            let tokens = self.venus.token_changes();
            let id = self.find_id(uid).await?;
            let mut kept = self.kept();
            if kept.tokens == tokens {
                kept.ids.insert(uid, (id, self.env.now() + FRESH_FOR));
            }
            Ok(id)
        })
    }

    fn foreign_account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        Box::pin(self.numbered(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_bounded_and_asked_for_again_when_there_are_too_many() {
        let mut kept = AccountCache::default();
        let account = Account { uid: NOBODY, gid: NO_GROUP, is_settled: true };
        for n in 0..3 * KEPT_MAX as u32 {
            kept.empty_if_due(0);
            kept.accounts.insert(ViceId(n as i32), (account, Instant::ZERO));
            kept.ids.insert(n, (ViceId(n as i32), Instant::ZERO));
            assert!(kept.accounts.len().max(kept.ids.len()) <= KEPT_MAX);
        }
        kept.empty_if_due(1);
        assert!(kept.accounts.is_empty() && kept.ids.is_empty(), "users may be others");
    }
}
