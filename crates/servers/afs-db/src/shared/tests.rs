//! Tests of several servers on one shared store, with lost calls, lost replies and partitions.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, UnixTime};
use afs_sim::{Sim, SimRng};
use afs_wire::ids::{UnixSeconds, Uuid, ViceId, VolumeId};
use parking_lot::Mutex;

use super::memory::Faults;
use super::{
    Freshness, MemoryShared, MemoryStore, SharedDatabase, SharedOptions, SharedRows, SharedStore, Sharing,
};
use crate::location::entry::entry_flags;
use crate::location::{entries, lock as locks, servers, volume_ids};
use crate::protection::{NewEntry, NewId, Requester, RequesterIdentity, StoredProtectionDb};
use crate::{
    EntryKey, LocationDb, LocationError, MemoryRows, Proposal, ProposedSite, ProtectionDb, Refusal, Release,
    Row, Rows, RowsMut, Store, StoredLocationDb,
};

const LIMIT: Duration = Duration::from_secs(3600);
const OPTIONS: SharedOptions = SharedOptions {
    change_max: Duration::from_secs(10),
    confirm_max: Duration::from_secs(2),
    stale_max: Duration::from_secs(60),
};

/// The history, in the rows themselves: one row for each committed change.
const LOG: &str = "vl-test-log";

/// A server with its route to the store.
#[derive(Clone)]
struct Server {
    env: EnvRef,
    store: MemoryStore,
    sharing: Arc<Sharing>,
}

impl Server {
    fn rows(&self) -> SharedRows {
        self.sharing.rows(SharedDatabase::Locations, Freshness::Confirmed)
    }

    fn locations(&self) -> StoredLocationDb<SharedRows> {
        StoredLocationDb::over(self.rows())
    }
}

fn servers(sim: &Sim, shared: &MemoryShared, count: u8) -> Vec<Server> {
    (1..=count)
        .map(|number| {
            let node = sim.node(&format!("server{number}"), IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)));
            let env = sim.env(node);
            let store = shared.reached_from(env.clone());
            let start = Sharing::start(env.clone(), Arc::new(store.clone()), Uuid([number; 16]), OPTIONS);
            let sharing = sim.block_on(node, LIMIT, start).unwrap().unwrap();
            Server { env, store, sharing }
        })
        .collect()
}

/// A change by some server.
#[derive(Clone, Copy, Debug)]
enum Move {
    Create(u32),
    Delete(u32),
    Ids(u32),
    Register(u8, u8),
    Lock(u32),
    Unlock(u32),
}

fn any(rng: &mut SimRng) -> Move {
    let number = rng.below(6) as u32;
    match rng.below(6) {
        0 => Move::Create(number),
        1 => Move::Delete(number),
        2 => Move::Ids(1 + number),
        3 => Move::Register(number as u8 % 3, rng.below(4) as u8),
        4 => Move::Lock(number),
        _ => Move::Unlock(number),
    }
}

impl Move {
    /// Applies the rules of every store; returns a number that shows what the change read.
    fn run(self, rows: &mut (impl RowsMut + ?Sized)) -> Result<u32, LocationError> {
        let id = |number: u32| VolumeId(100 + number);
        match self {
            Move::Create(number) => entries::create(rows, &proposal(number)).map(|()| number),
            Move::Delete(number) => entries::delete(rows, id(number), None).map(|()| number),
            Move::Ids(count) => volume_ids::allocate(rows, count).map(|id| id.0),
            Move::Register(server, address) => {
                let addresses = [Ipv4Addr::new(10, 0, server, address), Ipv4Addr::new(10, 0, server, 9)];
                servers::register(rows, Uuid([server + 1; 16]), &addresses).map(|slot| slot.0.into())
            }
            Move::Lock(number) => {
                locks::set(rows, id(number), None, entry_flags::MOVE, UnixSeconds(7)).map(|()| number)
            }
            Move::Unlock(number) => locks::release(rows, id(number), None, Release::ALL).map(|()| number),
        }
    }
}

fn proposal(number: u32) -> Proposal {
    let site = ProposedSite { address: Ipv4Addr::new(10, 0, (number % 3) as u8, 9), partition: 0, flags: 4 };
    Proposal {
        name: format!("volume.{number}"),
        ids: [VolumeId(100 + number), VolumeId(0), VolumeId(0)],
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![site],
    }
}

/// The result of a change at its server.
type ChangeResult = Result<u32, LocationError>;

/// A change that appends itself and its result to the history.
fn logged(number: u32, wanted: Move) -> impl Fn(&mut dyn RowsMut) -> ChangeResult + Send + Sync {
    move |rows| {
        let seen = wanted.run(rows)?;
        let place = rows.range(LOG, &[0], &[0xff], usize::MAX)?.len() as u32;
        let key = [&[1], &place.to_be_bytes()[..]].concat();
        rows.put(LOG, &key, &[number.to_be_bytes(), seen.to_be_bytes()].concat())?;
        Ok(seen)
    }
}

/// Breaks and restores the routes to the store.
async fn weather(env: EnvRef, shared: MemoryShared, ways: Vec<MemoryStore>, mut rng: SimRng) {
    loop {
        env.sleep(rng.duration(Duration::from_millis(1), Duration::from_secs(3))).await;
        let faults = Faults {
            cut: rng.chance(150_000),
            lost_answers: rng.below(128) as u8,
            lost_calls: rng.below(64) as u8,
            delay_max: rng.duration(Duration::ZERO, Duration::from_millis(60)),
        };
        if let Some(way) = rng.pick(&ways) {
            way.set(faults);
        }
        if rng.chance(100_000) {
            shared.forget();
        }
    }
}

/// Several servers make random changes at once. Afterwards the rows are as if the changes had been made one
/// after the other in the order of the history; nothing acknowledged is missing, and nothing was done twice.
fn run(seed: u64) {
    let sim = Sim::new(seed);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 3);
    let mut rng = sim.world().fork_rng();
    let node = sim.node("weather", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 99)));
    let ways: Vec<_> = servers.iter().map(|server| server.store.clone()).collect();
    let env = sim.env(node);
    env.spawn(Box::pin(weather(env.clone(), shared.clone(), ways.clone(), rng.fork())));
    let moves: Vec<Move> = (0..90).map(|_| any(&mut rng)).collect();
    let told: Arc<Mutex<BTreeMap<u32, ChangeResult>>> = Arc::default();
    for (number, wanted) in moves.iter().copied().enumerate() {
        let (server, told) = (servers[number % servers.len()].clone(), told.clone());
        let pause = rng.duration(Duration::ZERO, Duration::from_secs(40));
        let env = server.env.clone();
        env.clone().spawn(Box::pin(async move {
            env.sleep(pause).await;
            let answer = server.rows().change(logged(number as u32, wanted)).await;
            told.lock().insert(number as u32, answer);
        }));
    }
    sim.run_until(LIMIT, || told.lock().len() == moves.len()).unwrap();
    sim.world().crash(node);
    ways.iter().for_each(|way| way.set(Faults::default()));
    sim.run_for(Duration::from_secs(30));

    let mut model = MemoryRows::default();
    let log = servers[0].sharing.replica().range(LOG, &[0], &[0xff], usize::MAX).unwrap();
    let mut made = BTreeMap::new();
    for (_, row) in &log {
        let [number, seen] =
            [&row[..4], &row[4..]].map(|bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
        let again = moves[number as usize].run(&mut model);
        assert_eq!(again, Ok(seen), "change {number} as it would be alone");
        assert_eq!(made.insert(number, seen), None, "change {number} was made twice");
    }
    for (number, told) in told.lock().iter() {
        match told {
            Ok(seen) => assert_eq!(made.get(number), Some(seen), "change {number} was acknowledged"),
            Err(LocationError::NoQuorum) => {}
            Err(error) => assert!(!made.contains_key(number), "change {number} was refused: {error}"),
        }
    }
    assert!(made.len() > 10, "only {} of the changes happened", made.len());
    for server in &servers {
        for table in crate::TABLES.iter().filter(|table| table.starts_with("vl-")) {
            assert_eq!(all(&*server.sharing.replica(), table), all(&model, table), "{table}");
        }
    }
}

fn all(rows: &impl Rows, table: &'static str) -> Vec<Row> {
    rows.range(table, &[], &[0xff; 80], usize::MAX).unwrap()
}

#[test]
fn changes_of_several_servers_stand_in_one_row() {
    for seed in afs_sim::crash::seeds(40) {
        run(seed);
    }
}

#[test]
fn the_same_seed_is_the_same_world() {
    let world = || {
        let sim = Sim::new(5);
        let shared = MemoryShared::default();
        let servers = servers(&sim, &shared, 2);
        let (a, b) = (servers[0].locations(), servers[1].locations());
        let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
        let both = async move { (a.new_volume_ids(3).await.unwrap(), b.new_volume_ids(1).await.unwrap()) };
        (sim.block_on(node, LIMIT, both).unwrap(), sim.world().fingerprint())
    };
    assert_eq!(world(), world());
}

#[test]
fn a_change_acknowledged_by_one_server_is_read_from_the_others() {
    let sim = Sim::new(1);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 3);
    let slow = Faults { delay_max: Duration::from_millis(300), ..Faults::default() };
    servers.iter().for_each(|server| server.store.set(slow));
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    sim.block_on(node, LIMIT, async move {
        for number in 0..6u32 {
            servers[number as usize % 3].locations().create(proposal(number)).await.unwrap();
            for server in &servers {
                let found = server.locations().entry(EntryKey::Name(format!("volume.{number}"))).await;
                assert_eq!(found.unwrap().entry.ids[0], VolumeId(100 + number));
            }
            let twice = servers[(number as usize + 1) % 3].locations().create(proposal(number)).await;
            assert_eq!(twice, Err(Refusal::IdExists.into()));
        }
    })
    .unwrap();
}

#[test]
fn a_server_that_is_cut_off_reads_and_changes_nothing() {
    let sim = Sim::new(2);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 2);
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let env = sim.env(node);
    sim.block_on(node, LIMIT, async move {
        let (away, here) = (&servers[0], &servers[1]);
        let people =
            |freshness| StoredProtectionDb::over(away.sharing.rows(SharedDatabase::Protection, freshness));
        here.locations().create(proposal(0)).await.unwrap();
        people(Freshness::Followed).bootstrap("admin".into()).await.unwrap();
        away.locations().entry(EntryKey::Id(VolumeId(100), None)).await.unwrap();
        away.store.set(Faults { cut: true, ..Faults::default() });
        // Locations are answered from the replica, and quickly once the store is known to be unreachable.
        away.locations().entry(EntryKey::Id(VolumeId(100), None)).await.unwrap();
        let asked = env.now();
        away.locations().entry(EntryKey::Id(VolumeId(100), None)).await.unwrap();
        assert_eq!(env.now(), asked);
        assert_eq!(away.locations().create(proposal(1)).await, Err(LocationError::NoQuorum));
        here.locations().create(proposal(1)).await.unwrap();
        assert!(!away.sharing.has_quorum() && here.sharing.has_quorum());
        // Identities are answered as long as the replica cannot be too old.
        people(Freshness::Followed).names_of(vec![]).await.unwrap();
        env.sleep(OPTIONS.stale_max).await;
        for freshness in [Freshness::Followed, Freshness::ConfirmedWithin] {
            let late = people(freshness).names_of(vec![]).await;
            assert_eq!(late, Err(crate::protection::ProtectionError::NoQuorum));
        }
        away.locations().entry(EntryKey::Id(VolumeId(100), None)).await.unwrap();
        away.store.set(Faults::default());
        env.sleep(Duration::from_secs(5)).await;
        assert!(away.sharing.has_quorum());
        away.locations().entry(EntryKey::Id(VolumeId(101), None)).await.unwrap();
        people(Freshness::Followed).names_of(vec![]).await.unwrap();
        away.locations().create(proposal(2)).await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_server_that_has_lost_the_store_for_a_moment_answers_nothing_old() {
    let sim = Sim::new(7);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 2);
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let env = sim.env(node);
    sim.block_on(node, LIMIT, async move {
        let (away, here) = (servers[0].clone(), &servers[1]);
        away.store.set(Faults { cut: true, ..Faults::default() });
        while away.sharing.has_quorum() {
            env.sleep(Duration::from_millis(100)).await;
        }
        here.locations().create(proposal(0)).await.unwrap();
        let (later, store) = (env.clone(), away.store.clone());
        env.spawn(Box::pin(async move {
            later.sleep(Duration::from_secs(4)).await;
            store.set(Faults::default());
        }));
        away.locations().entry(EntryKey::Id(VolumeId(100), None)).await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_commit_whose_answer_was_lost_is_made_once() {
    let sim = Sim::new(3);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 1);
    let server = servers[0].clone();
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let env = sim.env(node);
    let ids = sim.block_on(node, LIMIT, async move {
        server.store.set(Faults { lost_answers: 255, ..Faults::default() });
        let (store, mended) = (server.store.clone(), env.sleep(Duration::from_secs(3)));
        env.spawn(Box::pin(async move {
            mended.await;
            store.set(Faults::default());
        }));
        let first = server.locations().new_volume_ids(5).await.unwrap();
        (first, server.locations().new_volume_ids(0).await.unwrap())
    });
    assert_eq!(ids.unwrap(), (crate::FIRST_VOLUME_ID, VolumeId(crate::FIRST_VOLUME_ID.0 + 5)));
}

#[test]
fn the_protection_rules_run_on_shared_rows() {
    let sim = Sim::new(4);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 2);
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    sim.block_on(node, LIMIT, async move {
        let [a, b] = [0, 1].map(|n: usize| {
            StoredProtectionDb::over(
                servers[n].sharing.rows(SharedDatabase::Protection, Freshness::ConfirmedWithin),
            )
        });
        a.bootstrap("admin".into()).await.unwrap();
        let alice = NewEntry { name: "alice".into(), id: NewId::User, owner: afs_wire::ids::ViceId(0) };
        let id = b.create(Requester::CELL, alice).await.unwrap();
        let before = a.version();
        b.add_member(Requester::CELL, id, afs_wire::ids::ViceId::ADMINISTRATORS).await.unwrap();
        assert!(
            a.cps(id, Default::default()).await.unwrap().contains(&afs_wire::ids::ViceId::ADMINISTRATORS)
        );
        assert!(a.version() > before);
    })
    .unwrap();
}

/// Bytes of all rows in a server's memory.
fn bytes(server: &Server) -> usize {
    server.sharing.replica().rows(&[], &[0xff; 80]).map(|(key, value)| key.len() + value.len()).sum()
}

#[test]
fn a_row_is_in_memory_once_however_often_it_is_changed_and_not_when_it_was_removed() {
    let sim = Sim::new(8);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 2);
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let env = sim.env(node);
    sim.block_on(node, LIMIT, async move {
        let mut first = None;
        for round in 0..20 {
            for (n, server) in servers.iter().cycle().take(50).enumerate() {
                let key = (n as u16 % 7).to_be_bytes();
                let rows = server.rows();
                rows.change(move |rows| rows.put(LOG, &key, &[n as u8; 100])).await.unwrap();
                let other = (round * 100 + n as u16).to_be_bytes();
                rows.change(move |rows| rows.put(LOG, &[&[9], &other[..]].concat(), &[1; 100]))
                    .await
                    .unwrap();
                rows.change(move |rows| rows.delete(LOG, &[&[9], &other[..]].concat())).await.unwrap();
            }
            // The stream of changes begins anew: with those that are here already, or with a copy of all rows.
            servers.iter().for_each(|server| server.store.set(Faults { cut: true, ..Faults::default() }));
            env.sleep(Duration::from_secs(3)).await;
            if round % 2 == 0 {
                shared.forget();
            }
            servers.iter().for_each(|server| server.store.set(Faults::default()));
            env.sleep(Duration::from_secs(10)).await;
            let now = bytes(&servers[0]);
            assert_eq!((now, bytes(&servers[1])), (*first.get_or_insert(now), now), "round {round}");
        }
    })
    .unwrap();
}

#[test]
fn a_user_adds_the_rows_of_as_many_groups_as_the_quota_has() {
    let sim = Sim::new(9);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 2);
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let env = sim.env(node);
    sim.block_on(node, LIMIT, async move {
        let dbs = [0, 1].map(|n: usize| {
            let rows = servers[n].sharing.rows(SharedDatabase::Protection, Freshness::ConfirmedWithin);
            StoredProtectionDb::over(rows)
        });
        dbs[0].bootstrap("admin".into()).await.unwrap();
        let alice = NewEntry { name: "alice".into(), id: NewId::User, owner: ViceId(0) };
        dbs[0].create(Requester::CELL, alice).await.unwrap();
        let alice = Requester { identity: RequesterIdentity::local("alice"), restricted: false };
        let group = |n: usize| {
            // The longest name.
            let name = format!("alice:{n:057}");
            dbs[n % 2].create(alice.clone(), NewEntry { name, id: NewId::Group, owner: ViceId(0) })
        };
        let mut made = Vec::new();
        for n in 0..100 {
            match group(n).await {
                Ok(id) => made.push(id),
                refused => assert_eq!(refused, Err(crate::protection::Refusal::NoMore.into())),
            }
        }
        assert_eq!(made.len(), 20);
        env.sleep(Duration::from_secs(1)).await;
        let full = bytes(&servers[0]);
        for n in 100..200 {
            dbs[n % 2].delete(alice.clone(), made.remove(0), UnixTime { secs: 0, nanos: 0 }).await.unwrap();
            made.push(group(n).await.unwrap());
        }
        group(200).await.unwrap_err();
        env.sleep(Duration::from_secs(1)).await;
        assert_eq!((bytes(&servers[0]), bytes(&servers[1])), (full, full));
    })
    .unwrap();
}

#[test]
fn a_change_that_is_too_large_is_refused_and_the_next_one_is_not() {
    let sim = Sim::new(6);
    let shared = MemoryShared::default();
    let servers = servers(&sim, &shared, 1);
    let rows = servers[0].rows();
    let node = sim.node("user", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let write = |len: usize| {
        move |rows: &mut dyn RowsMut| -> Result<(), LocationError> { rows.put(LOG, b"x", &vec![7; len]) }
    };
    sim.block_on(node, LIMIT, async move {
        let refused = rows.change(write(super::TRANSACTION_BYTES_MAX + 1)).await;
        assert!(matches!(refused, Err(LocationError::Store(why)) if why.contains("larger") || why.contains("more")));
        rows.change(write(10)).await.unwrap();
    })
    .unwrap();
}

#[test]
fn a_late_server_copies_page_by_page() {
    let sim = Sim::new(7);
    let shared = MemoryShared::default();
    let first = servers(&sim, &shared, 1).remove(0);
    let node = sim.node("late", IpAddr::V4(Ipv4Addr::new(10, 0, 0, 50)));
    let env = sim.env(node);
    let store: Arc<dyn SharedStore> = Arc::new(shared.reached_from(env.clone()));
    let rows = sim.block_on(node, LIMIT, async move {
        for part in 0..5u16 {
            let fill = move |rows: &mut dyn RowsMut| -> Result<(), LocationError> {
                (0..700u16).try_for_each(|n| rows.put(LOG, &(part * 1000 + n).to_be_bytes(), &[1]))
            };
            first.rows().change(fill).await.unwrap();
        }
        let late = Sharing::start(env, store, Uuid([9; 16]), OPTIONS).await.unwrap();
        all(&*late.replica(), LOG).len()
    });
    assert_eq!(rows.unwrap(), 3500);
}
