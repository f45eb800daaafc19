//! Login server: serves the calls of the login service.

mod attempt;
mod authority;
mod cache_key;
mod groups;
mod keys;
mod known_locations;
mod passphrase;
mod rate_limit;
mod recorded;
mod records;
mod register;
mod renew;
mod revoke;
mod slots;
mod ssh;
mod stores;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvRef, Level, Service, Table, Terms, UnixTime};
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, ViceId};
use afs_wire::login::{self, Renewal, SealedGrant, VERSION, Wish};
use afs_wire::rpc::ServiceId;

use crate::crypto::SealKey;
use crate::grant::Grant;
use crate::protocol::Kind;
use crate::secret::LoginSecret;
use crate::user::UserName;
use rate_limit::RateLimit;
use recorded::recorded;
use records::{Records, failed};

pub use recorded::Recorder;
pub use stores::{KeyMint, LoginStore, Mint, StoreError, User, Users};

/// Lifetimes of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lifetimes {
    /// Longest time from login or renewal to the token's expiry. Default 25 h: a day, and an hour to be late in. At
    /// least a minute.
    pub token: Duration,
    /// From login to the expiry of the last renewed token. Default 7 d. Less than [`Lifetimes::token`] permits no
    /// renewal at all.
    pub renewable: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self { token: Duration::from_secs(25 * 3600), renewable: Duration::from_secs(7 * 24 * 3600) }
    }
}

/// Components of a login server.
pub struct LoginConfig {
    /// Time and randomness.
    pub env: EnvRef,
    /// The cell that users log in to.
    pub cell: CellName,
    /// The cell's login secret.
    pub secret: LoginSecret,
    /// Lifetimes of tokens.
    pub lifetimes: Lifetimes,
    /// Store of users' records.
    pub store: Arc<dyn LoginStore>,
    /// The protection database.
    pub users: Arc<dyn Users>,
    /// Creates tokens with the cell's key.
    pub mint: Arc<dyn Mint>,
    /// Records logins, revocations, and changes to ways to log in.
    pub recorder: Arc<dyn Recorder>,
}

/// The cell's login service. It keeps no state in memory of a login in progress: that is sealed and kept by the
/// client.
pub struct LoginServer {
    env: EnvRef,
    cell: CellName,
    secret: LoginSecret,
    lifetimes: Lifetimes,
    records: Records,
    users: Arc<dyn Users>,
    mint: Arc<dyn Mint>,
    recorder: Arc<dyn Recorder>,
    /// Seals the state of logins in progress; a key of this process only, so that no state outlives it.
    attempts: SealKey,
    rate_limit: RateLimit,
}

impl fmt::Debug for LoginServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginServer({}, {:?})", self.cell, self.secret)
    }
}

impl LoginServer {
    /// A server from its components.
    #[must_use]
    pub fn new(config: LoginConfig) -> Arc<Self> {
        let LoginConfig { env, cell, secret, lifetimes, store, users, mint, recorder } = config;
        let attempts = SealKey::fresh(&env);
        let rate_limit = RateLimit::new(&env);
        let records = Records(store);
        Arc::new(Self { env, cell, secret, lifetimes, records, users, mint, recorder, attempts, rate_limit })
    }

    /// The server as a service. Offer it with the cell's security classes and with none: a client that logs in cannot
    /// authenticate yet, and one that renews or sets a passphrase must.
    #[must_use]
    pub fn service(self: &Arc<Self>) -> Arc<dyn Service> {
        let table =
            Table::new(ServiceId::LOGIN, self.clone())
                .call(|server: Arc<Self>, caller, ask: login::PassphraseStart| async move {
                    server.passphrase_start(&caller, ask).await
                })
                .call(|server: Arc<Self>, _, ask: login::SshStart| async move { server.ssh_start(ask).await })
                .call(|server: Arc<Self>, caller, ask: login::Renew| async move {
                    server.renew(&caller, ask).await
                })
                .call(|server: Arc<Self>, caller, ask: login::ChangeGroups| async move {
                    server.change_groups(&caller, ask).await
                })
                .call(|server: Arc<Self>, caller, ask: login::RegisterStart| async move {
                    server.register_start(&caller, ask).await
                })
                .call(|server: Arc<Self>, caller, ask: login::ListWays| async move {
                    server.list_ways(&caller, ask).await
                })
                .call(|server: Arc<Self>, caller, ask: login::CacheKey| async move {
                    server.cache_key(&caller, ask).await
                });
        Arc::new(with_records(table))
    }

    /// Makes a token for an authenticated user, and seals it.
    async fn grant(&self, to: Grantee<'_>, key: &SealKey, kind: &Kind) -> Result<SealedGrant, AbortCode> {
        let Grantee { user, level, end, terms, renewal, renewable_until } = to;
        let suspended = &terms.suspended;
        let names = self.users.names_of(suspended.groups()).await.map_err(failed)?;
        let token = self.mint.mint(user, level, end, &terms).ok_or(AbortCode::LGNIO)?;
        let renewal = if renewable_until > end { renewal } else { Renewal::empty() };
        let host_key = Some(self.secret.host_key());
        let named = |(id, name): (&ViceId, Option<String>)| name.unwrap_or_else(|| id.0.to_string());
        let without = suspended.groups().iter().zip(names).map(named).collect();
        let grant = Grant { token, renewal, renewable_until, host_key, without };
        let sealed = key.seal(kind.purpose.as_bytes(), &grant.encode(), &self.env);
        Grant::to_wire(sealed).map_err(|_| AbortCode::LGNIO)
    }

    /// When a token that is made now ends.
    fn end(&self, wish: &Wish, renewable_until: UnixTime) -> UnixTime {
        let now = self.env.wall();
        later(now, self.lifetime(wish)).min(renewable_until.max(now))
    }

    fn lifetime(&self, wish: &Wish) -> Duration {
        let most = self.lifetimes.token.max(Duration::from_secs(60));
        match wish.lifetime {
            0 => most,
            wished => Duration::from_secs(wished.into()).min(most),
        }
    }
}

/// The calls of which the outcome is recorded.
fn with_records(table: Table<LoginServer>) -> Table<LoginServer> {
    let table = recorded(table, |server, caller, ask: login::PassphraseFinish| async move {
        server.passphrase_finish(&caller, ask).await
    });
    let table = recorded(table, |server, caller, ask: login::SshFinish| async move {
        server.ssh_finish(&caller, ask).await
    });
    let table = recorded(table, |server, caller, ask: login::RegisterFinish| async move {
        server.register_finish(&caller, ask).await
    });
    let table = recorded(table, |server, caller, ask: login::RemovePassphrase| async move {
        server.remove_passphrase(&caller, ask).await
    });
    let table = recorded(table, |server, caller, ask: login::AddSshKey| async move {
        server.add_ssh_key(&caller, ask).await
    });
    let table = recorded(table, |server, caller, ask: login::RemoveSshKey| async move {
        server.remove_ssh_key(&caller, ask).await
    });
    recorded(table, |server, caller, ask: login::Revoke| async move { server.revoke(&caller, ask).await })
}

/// The user who gets a token, with its properties.
struct Grantee<'a> {
    user: &'a UserName,
    level: Level,
    end: UnixTime,
    terms: Terms,
    renewal: Renewal,
    renewable_until: UnixTime,
}

fn level_of(wish: &Wish) -> Result<Level, AbortCode> {
    Level::from_number(wish.level).ok_or(AbortCode::RXGEN_SS_UNMARSHAL)
}

fn later(time: UnixTime, by: Duration) -> UnixTime {
    UnixTime { secs: time.secs.saturating_add(by.as_secs()), nanos: 0 }
}

fn check_version(version: u32) -> Result<(), AbortCode> {
    if version == VERSION { Ok(()) } else { Err(AbortCode::LGNVERSION) }
}
