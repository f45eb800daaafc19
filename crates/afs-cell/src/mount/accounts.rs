//! Map of owners of files to users of this machine: token holders, then accounts of the same name, then plain numbers.

use crate::mount::local_accounts::{AccountLookup, LocalUser, by_name, by_uid};
use afs_fuse::{Account, AccountFuture, Accounts, NO_GROUP, NOBODY, Owner};
use afs_rpc::{Connection, EnvExt, EnvRef, Instant};
use afs_venus::{TokenInfo, Venus};
use afs_wire::ids::{CellName, ViceId};
use afs_wire::pt::{IdToName, Ids, NameChars, NameToId, Names};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// Time-out of a call to the protection service.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a result is kept.
const GOOD_FOR: Duration = Duration::from_secs(3600);
/// How long it is kept that the protection service did not reply.
const SILENT_FOR: Duration = Duration::from_secs(10);
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
}

/// Result of a look-up at the protection service.
enum Lookup<T> {
    Known(T),
    NotFound,
    Nothing,
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

    fn known(&self, id: ViceId) -> Option<Account> {
        let mut kept = self.kept.lock();
        let tokens = self.venus.token_changes();
        if kept.tokens != tokens || kept.accounts.len() > KEPT_MAX {
            *kept = AccountCache { tokens, accounts: HashMap::new() };
        }
        let (account, until) = kept.accounts.get(&id)?;
        (self.env.now() < *until).then_some(*account)
    }

    async fn find(&self, id: ViceId) -> Account {
        let tokens = self.venus.token_changes();
        let account = match self.name(id).await {
            Lookup::Known(name) => self.named(id, &name).await,
            Lookup::NotFound => self.numbered(id).await,
            Lookup::Nothing => Account { uid: NOBODY, gid: NO_GROUP, is_settled: false },
        };
        let until = self.env.now() + if account.is_settled { GOOD_FOR } else { SILENT_FOR };
        let mut kept = self.kept.lock();
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

    /// A number is shown unchanged if no account of this machine has it.
    async fn numbered(&self, id: ViceId) -> Account {
        let nobody = Account { uid: NOBODY, gid: NO_GROUP, is_settled: true };
        let number = u32::try_from(id.0).ok().filter(|_| id != ViceId::ANONYMOUS && id.0 > 0);
        let Some(uid) = number else { return nobody };
        match self.local(uid, by_uid).await {
            AccountLookup::NotFound => Account { uid, ..nobody },
            _ => nobody,
        }
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

    async fn find_id(&self, uid: u32) -> Option<ViceId> {
        let mut names: Vec<String> = self.labels_of(uid);
        match self.local(uid, by_uid).await {
            AccountLookup::User(user) => names.push(user.name),
            AccountLookup::NotFound => {
                let id = i32::try_from(uid).ok().map(ViceId)?;
                if names.is_empty() && self.account(id).await.uid == uid {
                    return Some(id);
                }
            }
            AccountLookup::Unknown => {}
        }
        for name in names {
            if let Lookup::Known(id) = self.id_of(&name).await
                && self.account(id).await.uid == uid
            {
                return Some(id);
            }
        }
        None
    }
}

impl Accounts for CellAccounts {
    fn account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        Box::pin(async move {
            if let Some(owner) = self.owner.filter(|owner| owner.vice == id) {
                return Account { uid: owner.uid, gid: owner.gid, is_settled: true };
            }
            match self.known(id) {
                Some(account) => account,
                None => self.find(id).await,
            }
        })
    }

    fn id(&self, uid: u32) -> AccountFuture<'_, Option<ViceId>> {
        Box::pin(async move {
            match self.owner.filter(|owner| owner.uid == uid) {
                Some(owner) => Some(owner.vice),
                None => self.find_id(uid).await,
            }
        })
    }

    fn foreign_account(&self, id: ViceId) -> AccountFuture<'_, Account> {
        Box::pin(self.numbered(id))
    }
}
