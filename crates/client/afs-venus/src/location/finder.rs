//! Finder of cells: by the table, else by a look-up such as that of DNS, whose replies are bounded, checked and remembered.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, Rx, sync};
use afs_wire::ids::CellName;
use parking_lot::Mutex;

use crate::config::CellConfig;
use crate::key::CellIndex;
use crate::location::absent::AbsentCells;
use crate::location::look_up_checks::{can_be_domain, usable};
use crate::location::{Cell, Location};
use crate::resolver::{CellResolver, Resolved};

/// Limit of the cells that look-ups add to a mount. Beyond it no other is found until the mount is started again, since objects of any
/// of them may be in use; cells of the configuration do not count.
const FOUND_MAX: usize = 256;
/// Limit of look-ups in progress; further ones wait for one of these.
const RUNNING_MAX: usize = 16;
/// Time limit of a look-up, the wait for its turn included.
const LOOK_UP_MAX: Duration = Duration::from_secs(6);
/// Bounds of the time for which addresses of a cell are valid.
const FOUND_FOR: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(86_400));
/// Bounds of the time for which it is remembered that there is no such cell.
const ABSENT_FOR: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// How long it is remembered that a look-up got no reply.
const FAILED_FOR: Duration = Duration::from_secs(15);
/// Port of file servers, which a look-up does not tell.
const FILE_PORT: u16 = 7000;

/// Finder of the cells of a mount.
pub(crate) struct CellFinder {
    env: EnvRef,
    rx: Rx,
    /// Dead time of location servers.
    dead: Duration,
    location: Arc<Location>,
    resolver: Option<Arc<dyn CellResolver>>,
    running: sync::Semaphore,
    /// One look-up of a name at a time.
    turns: Mutex<BTreeMap<CellName, Arc<sync::Mutex<()>>>>,
    absent: AbsentCells,
}

impl CellFinder {
    pub fn new(
        env: EnvRef,
        rx: Rx,
        dead: Duration,
        location: Arc<Location>,
        resolver: Option<Arc<dyn CellResolver>>,
    ) -> Self {
        CellFinder {
            env,
            rx,
            dead,
            location,
            resolver,
            running: sync::Semaphore::new(RUNNING_MAX),
            turns: Mutex::default(),
            absent: AbsentCells::default(),
        }
    }

    /// The cell of a name, ignoring case. A name that is not in the table is looked up if a domain can have it, which takes six seconds
    /// at most, and nothing if it was looked up a short while ago.
    pub async fn find(&self, name: &str) -> Option<CellIndex> {
        if let Some(index) = self.location.cell_named(name) {
            return Some(index);
        }
        let resolver = self.resolver.as_ref()?;
        let name = CellName::new(name).ok().filter(can_be_domain)?;
        if self.is_absent(&name) {
            return None;
        }
        let turn = self.turns.lock().entry(name.clone()).or_default().clone();
        let found = self.find_in_turn(resolver, &name, &turn).await;
        let mut turns = self.turns.lock();
        // No other task waits: the table has the one reference, and this task the other.
        if Arc::strong_count(&turn) <= 2 {
            turns.remove(&name);
        }
        found
    }

    async fn find_in_turn(
        &self,
        resolver: &Arc<dyn CellResolver>,
        name: &CellName,
        turn: &sync::Mutex<()>,
    ) -> Option<CellIndex> {
        let _turn = turn.lock().await;
        if let Some(index) = self.location.cell_named(name.as_str()) {
            return Some(index);
        }
        if self.is_absent(name) {
            return None;
        }
        match self.look_up(resolver, name).await {
            Looked::Servers(peers, valid) => self.add_found(name, peers, valid),
            Looked::Absent(valid) => {
                self.remember_absent(name, valid);
                None
            }
        }
    }

    /// Adds or changes a cell as the configuration does: its location servers replace those before, and no look-up changes them. `None`
    /// if there are too many cells, or no location server is named.
    pub fn configure(&self, config: &CellConfig) -> Option<CellIndex> {
        if config.location_servers.is_empty() {
            return None;
        }
        let index = self.location.add(Cell::new(config, &self.env, &self.rx, self.dead))?;
        self.location.cell(index)?.configure(config);
        Some(index)
    }

    /// Looks up again, in the background, the cells in use whose addresses are not valid any more. Until there is a reply, and without
    /// one, the known addresses stay.
    pub fn renew_outdated(self: &Arc<Self>) {
        let Some(resolver) = &self.resolver else { return };
        let now = self.env.now();
        for cell in self.location.cells().into_iter().filter(|cell| cell.is_outdated(now)) {
            // Not again until this one has ended.
            cell.valid_until(now + FOUND_FOR.0);
            let (me, resolver) = (self.clone(), resolver.clone());
            self.env.spawn(Box::pin(async move {
                if let Looked::Servers(peers, valid) = me.look_up(&resolver, &cell.name).await
                    && cell.is_found()
                {
                    cell.found(&peers, me.env.now() + valid);
                }
            }));
        }
    }

    async fn look_up(&self, resolver: &Arc<dyn CellResolver>, name: &CellName) -> Looked {
        let asked = async {
            // The semaphore is never closed.
            let _permit = self.running.acquire().await.ok();
            resolver.resolve(name).await
        };
        let resolved = self.env.timeout(LOOK_UP_MAX, asked).await;
        match resolved.unwrap_or_else(|_| Resolved::Failed("no reply in time".into())) {
            Resolved::Found { location_servers, ttl } => {
                let peers = usable(location_servers);
                if peers.is_empty() {
                    tracing::warn!(cell = %name, "the look-up of the cell names no address that a server elsewhere can have");
                    return Looked::Absent(ABSENT_FOR.1);
                }
                Looked::Servers(peers, ttl.clamp(FOUND_FOR.0, FOUND_FOR.1))
            }
            Resolved::NotFound { ttl } => Looked::Absent(ttl.clamp(ABSENT_FOR.0, ABSENT_FOR.1)),
            Resolved::Failed(why) => {
                tracing::info!(cell = %name, why, "the look-up of a cell failed");
                Looked::Absent(FAILED_FOR)
            }
        }
    }

    fn add_found(&self, name: &CellName, peers: Vec<SocketAddr>, valid: Duration) -> Option<CellIndex> {
        if self.location.cells().iter().filter(|cell| cell.is_found()).count() >= FOUND_MAX {
            tracing::warn!(cell = %name, "the cell is not added: {FOUND_MAX} were found by look-ups already");
            self.remember_absent(name, ABSENT_FOR.1);
            return None;
        }
        let config = CellConfig {
            name: name.clone(),
            location_servers: peers.clone(),
            file_port: FILE_PORT,
            is_listed: false,
        };
        let cell = Cell::new(&config, &self.env, &self.rx, self.dead);
        cell.found(&peers, self.env.now() + valid);
        tracing::info!(cell = %name, servers = ?peers, "a cell was found by a look-up");
        self.location.add(cell)
    }

    fn is_absent(&self, name: &CellName) -> bool {
        self.absent.has(name, self.env.now())
    }

    fn remember_absent(&self, name: &CellName, valid: Duration) {
        let now = self.env.now();
        self.absent.note(name, now + valid, now);
    }
}

/// Outcome of a look-up, and for how long it counts.
enum Looked {
    Servers(Vec<SocketAddr>, Duration),
    Absent(Duration),
}
