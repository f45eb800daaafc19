//! Shared rows, as seen by one server.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::sync::{Mutex, Notify};
use afs_rpc::{BoxFuture, EnvRef, Instant};
use afs_wire::ids::Uuid;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::confirm::Confirmations;
use super::health::Health;
use super::replica::Replica;
use super::store::{Revision, SharedError, SharedStore};
use crate::store::Store;
use crate::{LocationError, Rows, RowsMut};

/// Time-outs towards a store that does not reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedOptions {
    /// How long a change is retried before it is refused, and how long a store has to be unreachable before
    /// reads are answered from this server's replica. Default 10 s: longer than a majority takes to elect a
    /// new leader, and a server to find a route to it.
    pub change_max: Duration,
    /// Time-out of one query to the store before a new route to it is looked for. Default 2 s.
    pub confirm_max: Duration,
    /// Greatest age of this server's replica where rights depend on it ([`Freshness`]). Default 1 h.
    pub stale_max: Duration,
}

impl Default for SharedOptions {
    fn default() -> Self {
        SharedOptions {
            change_max: Duration::from_secs(10),
            confirm_max: Duration::from_secs(2),
            stale_max: Duration::from_secs(3600),
        }
    }
}

/// How new the rows must be for a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freshness {
    /// Everything that was acknowledged anywhere before the read began. From this server's replica when the
    /// store has not replied for [`SharedOptions::change_max`].
    Confirmed,
    /// As [`Freshness::Confirmed`]; refused when this server's replica is older than
    /// [`SharedOptions::stale_max`].
    ConfirmedWithin,
    /// This server's replica, which is milliseconds behind as long as the store replies; refused when it is
    /// older than [`SharedOptions::stale_max`]. Never waits.
    Followed,
}

/// A server's part in a shared store: the replica of its rows, and the tasks that keep it up to date.
pub struct Sharing {
    pub(super) env: EnvRef,
    pub(super) store: Arc<dyn SharedStore>,
    pub(super) options: SharedOptions,
    databases: [Arc<Database>; SharedDatabase::ALL.len()],
    replica: RwLock<Replica>,
    /// Notified after each change of the replica.
    pub(super) moved: Notify,
    /// Notified when the store has to be followed again.
    pub(super) stuck: Notify,
    pub(super) health: Health,
}

/// The rows of one database, shared by several servers, as a [`Store`].
#[derive(Clone)]
pub struct SharedRows {
    pub(super) sharing: Arc<Sharing>,
    pub(super) database: Arc<Database>,
    freshness: Freshness,
}

/// The databases in one store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharedDatabase {
    /// Volumes and servers.
    Locations,
    /// Users and groups.
    Protection,
    /// Login records.
    Login,
    /// Operations on volumes.
    Operations,
}

impl SharedDatabase {
    /// All of them.
    pub const ALL: [SharedDatabase; 4] = [Self::Locations, Self::Protection, Self::Login, Self::Operations];

    /// The database of a table, by the prefix of the table's name.
    pub(super) fn of_table(table: &str) -> Self {
        let name = table.split('-').next().unwrap_or_default();
        Self::ALL.into_iter().find(|database| database.name() == name).unwrap_or(Self::Locations)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Locations => "vl",
            Self::Protection => "pt",
            Self::Login => "login",
            Self::Operations => "op",
        }
    }
}

/// One of the databases in the store.
pub(super) struct Database {
    /// The row that every change of the database writes.
    pub(super) guard: Vec<u8>,
    /// The row that identifies this server's last change.
    pub(super) marker: Vec<u8>,
    /// Serialises this server's changes of the database: they would only conflict with each other.
    pub(super) turn: Mutex<()>,
    pub(super) confirmations: Confirmations,
}

impl Sharing {
    /// Copies the rows, and follows the store from then on, as long as `env` exists. `server` is the UUID of
    /// this server, which no other process has.
    ///
    /// # Errors
    /// The store does not reply, or refuses.
    pub async fn start(
        env: EnvRef,
        store: Arc<dyn SharedStore>,
        server: Uuid,
        options: SharedOptions,
    ) -> Result<Arc<Self>, SharedError> {
        let asked = env.now();
        let replica = super::follow::load(&*store).await?;
        let sharing = Arc::new(Sharing {
            health: Health::new(asked),
            replica: RwLock::new(replica),
            moved: Notify::new(),
            stuck: Notify::new(),
            env: env.clone(),
            store,
            options,
            databases: SharedDatabase::ALL.map(|database| Arc::new(Database::new(database, server))),
        });
        env.spawn(Box::pin(super::follow::follow(sharing.clone())));
        env.spawn(Box::pin(super::follow::listen(sharing.clone())));
        Ok(sharing)
    }

    /// The rows of a database, for readers that need this `freshness`.
    #[must_use]
    pub fn rows(self: &Arc<Self>, database: SharedDatabase, freshness: Freshness) -> SharedRows {
        let database = self.databases[database as usize].clone();
        SharedRows { sharing: self.clone(), database, freshness }
    }

    /// The guards of all databases.
    pub(super) fn guards(&self) -> Vec<Vec<u8>> {
        self.databases.iter().map(|database| database.guard.clone()).collect()
    }

    /// Whether changes are possible, as far as this server knows.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.health.down_since().is_none()
    }

    pub(super) fn replica(&self) -> RwLockReadGuard<'_, Replica> {
        self.replica.read()
    }

    pub(super) fn replica_mut(&self) -> RwLockWriteGuard<'_, Replica> {
        self.replica.write()
    }

    /// Ready when the replica satisfies `enough`.
    pub(super) async fn reached(&self, enough: impl Fn(&Replica) -> bool) {
        loop {
            let moved = self.moved.notified();
            if enough(&self.replica()) {
                return;
            }
            moved.await;
        }
    }

    fn is_within(&self, bound: Duration, now: Instant) -> bool {
        now.saturating_since(self.health.confirmed()) <= bound
    }
}

impl Database {
    fn new(database: SharedDatabase, server: Uuid) -> Self {
        let name = database.name().as_bytes();
        Database {
            guard: [b"guard/", name].concat(),
            marker: [b"done/", name, b"/", server.to_string().as_bytes()].concat(),
            turn: Mutex::new(()),
            confirmations: Confirmations::default(),
        }
    }
}

impl SharedRows {
    /// The same rows with another freshness.
    #[must_use]
    pub fn with(&self, freshness: Freshness) -> Self {
        SharedRows { freshness, ..self.clone() }
    }

    /// Waits for rows that are fresh enough.
    async fn refresh(&self) -> Result<(), LocationError> {
        let sharing = &self.sharing;
        if self.freshness != Freshness::Followed {
            self.confirm_while_there_is_hope().await;
        }
        let bounded = self.freshness != Freshness::Confirmed;
        if bounded && !sharing.is_within(sharing.options.stale_max, sharing.env.now()) {
            return Err(LocationError::NoQuorum);
        }
        Ok(())
    }

    pub(super) fn guard_revision(&self) -> Revision {
        self.sharing.replica().revision_of(&self.database.guard)
    }
}

impl Store for SharedRows {
    fn read<'a, T, E>(
        &'a self,
        query: impl Fn(&dyn Rows) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static,
    {
        Box::pin(async move {
            self.refresh().await?;
            query(&*self.sharing.replica())
        })
    }

    fn change<'a, T, E>(
        &'a self,
        change: impl Fn(&mut dyn RowsMut) -> Result<T, E> + Send + Sync + 'static,
    ) -> BoxFuture<'a, Result<T, E>>
    where
        T: Send + 'static,
        E: From<LocationError> + Send + 'static,
    {
        Box::pin(self.run(change))
    }

    /// The revision of the last change of the database in this server's replica.
    fn version(&self) -> u64 {
        self.guard_revision().0
    }

    fn changed(&self, since: u64) -> BoxFuture<'_, ()> {
        let is_new = move |replica: &Replica| replica.revision_of(&self.database.guard).0 != since;
        Box::pin(self.sharing.reached(is_new))
    }

    fn part_max(&self) -> usize {
        500
    }
}
