//! Servers of a cell that lie in replies to every kind of call: nothing but their own cell suffers, and no data of a user is lost unheard.
//!
//! `ANDREW_SEEDS=N` runs N worlds for each lie, `ANDREW_SEED=S` the one of that seed.

mod at_drives;
mod falsified;
mod operations;
mod scene;
mod statements;
mod storing;

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_testkit::allocated;
use afs_testkit::relay::{Delivered, Lie, LiePlan};
use afs_venus::{ErrorKind, NodeId, TokenOwner, Unsaved};

use crate::common::Client;
use operations::{KINDS, Outcome, operation, write_kept};
use scene::{ALICE, BOB, KNOWN, PLACED, SECRET, Scene, Setup};

/// Longest that an operation takes, whatever the server says: calls are repeated for a while, and then given up. One of them
/// holds a lock for 200 s of these.
const OPERATION_MAX: Duration = Duration::from_secs(300);
/// Most memory of all machines of a world together, above what the world has at first.
const MEMORY_MAX: isize = 64 << 20;
/// Who may copy out what any user has written.
const ROOT_USER: TokenOwner = TokenOwner::Uid(0);
const TURNS: u64 = 40;
/// Turns with files at drives, some of which take minutes.
const TURNS_AT_DRIVES: u64 = 30;

/// Calls about which lies are told, each in some setup: all that a client makes of file and location services, but for those that it makes
/// only where another one is not known, or seldom.
const CALLS: [&str; 26] = [
    "ChangeList",
    "ChangeLock",
    "Commit",
    "DataPath",
    "ExtendLock",
    "FetchACL",
    "FetchData64",
    "FetchStatus",
    "GetAddrsU",
    "GetCapabilities",
    "GetCapability",
    "GetEntryByNameU",
    "GetLayout",
    "GetTime",
    "GetVolumeStatus",
    "InlineBulkStatus",
    "ListSnapshots",
    "ReleaseLock",
    "ReturnLease",
    "SetLock",
    "StatusAndCapability",
    "StoreACL",
    "StoreData64",
    "StoreRanges",
    "StoreStatus",
    "TakeLease",
];

/// Calls that a client makes only where it reads and stores at drives itself.
const CALLS_AT_DRIVES: [&str; 6] = ["Command", "Commit", "EndRoom", "GetCapability", "GetLayout", "GetRoom"];

/// Lies of one kind in three of ten replies. Of the location service little is asked.
fn of_kind(lie: Lie) -> LiePlan {
    let is_of_locations = matches!(lie, Lie::OtherVolume | Lie::OtherAddress);
    LiePlan { lies: vec![lie], about: None, per_million: if is_of_locations { 700_000 } else { 300_000 } }
}

#[test]
fn no_lie_harms_another_cell_or_hangs_a_program_or_loses_what_it_wrote() {
    for lie in Lie::ALL {
        let told: u64 = seeds(4).map(|seed| told(&world(seed, setup_of(seed), of_kind(lie)))).sum();
        assert!(told > 0 || is_single(), "{lie:?} was never told");
    }
}

#[test]
fn no_lie_harms_those_who_store_and_read_at_drives_either() {
    for (seed, lie) in (0..).zip(all_at_drives()) {
        let is_told = |seed| told(&world(seed, Setup::Rooms, of_kind(lie))) > 0;
        let any = seeds(1).filter(|more| is_told(1000 * more + seed)).count() > 0;
        assert!(any || is_single(), "{lie:?} was never told");
    }
}

#[test]
fn no_lie_about_any_call_does() {
    let never = never_told(CALLS, Lie::ALL.to_vec(), setup_of);
    assert_eq!(never, [""; 0], "no lie about them was told");
}

#[test]
fn no_lie_about_any_call_for_drives_does() {
    let never = never_told(CALLS_AT_DRIVES, all_at_drives(), |_| Setup::Rooms);
    assert_eq!(never, [""; 0], "no lie about them was told");
}

#[test]
fn no_mixture_of_lies_does() {
    for seed in seeds(8) {
        let plan = LiePlan { lies: Lie::ALL.to_vec(), about: None, per_million: 300_000 };
        let told = told(&world(1000 + seed, setup_of(seed), plan));
        assert!(told > 10, "seed {seed}: {told}");
    }
    for seed in seeds(2) {
        let plan = LiePlan { lies: all_at_drives(), about: None, per_million: 200_000 };
        let lies = world(2000 + seed, Setup::Rooms, plan);
        assert!(told(&lies) > 0, "seed {seed} at drives");
    }
}

/// A new file was said to have the number of its directory: a look-up that asked for the neighbours of a name there waited for itself.
#[test]
fn a_file_that_is_said_to_be_its_directory_stops_no_look_up() {
    world(34, Setup::DataPath, of_kind(Lie::OtherFid));
}

/// The addresses of a server are kept as long as the version of their list is the same.
#[test]
fn addresses_of_a_server_that_were_a_lie_are_asked_for_again() {
    for seed in [1, 7] {
        world(seed, setup_of(seed), of_kind(Lie::OtherAddress));
    }
}

/// The same seed must give the same run, or a failing seed could not be reproduced.
#[test]
fn the_lies_of_a_seed_are_the_same_twice() {
    let plan = || LiePlan { lies: Lie::ALL.to_vec(), about: None, per_million: 200_000 };
    assert_eq!(world(5, Setup::Leases, plan()), world(5, Setup::Leases, plan()));
}

fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    match number("ANDREW_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ANDREW_SEEDS").unwrap_or(count),
    }
}

fn is_single() -> bool {
    std::env::var("ANDREW_SEED").is_ok()
}

fn setup_of(seed: u64) -> Setup {
    Setup::ALL[(seed % 4) as usize]
}

fn all_at_drives() -> Vec<Lie> {
    Lie::ALL.into_iter().chain([Lie::OtherDrive]).collect()
}

/// The calls of a list about which the liar told nothing in any of their worlds.
fn never_told<const N: usize>(
    calls: [&'static str; N],
    lies: Vec<Lie>,
    setup_of: impl Fn(u64) -> Setup,
) -> Vec<&'static str> {
    let is_told = |call: &&'static str| {
        let plan = LiePlan { lies: lies.clone(), about: Some(*call), per_million: 700_000 };
        (0..24).any(|seed| told(&world(seed, setup_of(seed), plan.clone())) > 0)
    };
    calls.into_iter().filter(|call| !is_told(call)).collect()
}

fn told(told: &Delivered) -> u64 {
    told.values().sum()
}

/// What was told in a world of that seed.
fn world(seed: u64, setup: Setup, plan: LiePlan) -> Delivered {
    let lies = if plan.lies.len() == 1 { format!("{:?}", plan.lies[0]) } else { "all lies".into() };
    println!("seed {seed}, {setup:?}: {lies} about {:?}", plan.about);
    let scene = Scene::new(seed, setup);
    let (before, _) = (allocated::held(), allocated::most_since());
    // No lie about these has a client store other bytes than its program's, or elsewhere.
    let is_about_drives = plan.about.is_some_and(|about| CALLS_AT_DRIVES.contains(&about));
    scene.liar.tell(plan);
    let (client, mut rng) = (scene.client.clone(), SimRng::new(seed));
    let written = scene.on(&scene.client, async move { under_lies(&client, (seed, setup), &mut rng).await });
    scene.liar.tell(LiePlan::default());
    scene.sim.run_for(Duration::from_secs(900));
    works_again(&scene, seed);
    let is_to_be_found = |outcome| outcome == Outcome::Kept || is_about_drives && outcome == Outcome::Stored;
    let written = written.into_iter().filter(|(_, outcome, _)| is_to_be_found(*outcome));
    // A file of which the server said that it is another one has its data there.
    let lost = not_found(&scene, written.map(|(name, _, data)| (name, data)).collect(), !is_about_drives);
    assert!(lost.is_empty(), "seed {seed}: neither stored nor set aside: {lost:?}");
    let most = allocated::most_since() - before;
    assert!(most < MEMORY_MAX, "seed {seed}: {} MiB", most >> 20);
    scene.liar.told()
}

/// Operations in both cells. Returns the files that were written once, with what their programs were told of them.
async fn under_lies(
    client: &Client,
    (seed, setup): (u64, Setup),
    rng: &mut SimRng,
) -> Vec<(String, Outcome, Vec<u8>)> {
    let mut written = Vec::new();
    let (turns, least) = match setup {
        Setup::Rooms => (TURNS_AT_DRIVES, PLACED),
        _ => (TURNS, 0),
    };
    for turn in 0..turns {
        let is_at_drives = setup == Setup::Rooms && rng.chance(700_000);
        let kind = rng.between(0, KINDS - 1);
        let user = client.user(*rng.pick(&[ALICE, BOB]).unwrap());
        let work = async {
            match is_at_drives {
                true => storing::operation(&user, rng).await,
                false => operation(&user, kind, rng).await,
            }
        };
        let done = client.env.timeout(OPERATION_MAX, work).await;
        assert!(done.is_ok(), "seed {seed}: turn {turn} with operation {kind} ({is_at_drives}) does not end");
        if turn % 5 == 0 {
            let name = format!("kept{turn}");
            let data = content(seed, &name, least);
            let wrote = client.env.timeout(OPERATION_MAX, write_kept(&user, &name, &data)).await;
            let outcome = wrote.unwrap_or_else(|_| panic!("seed {seed}: {name} does not end"));
            written.push((name, outcome, data));
        }
        honest_cell_goes_on(client, seed, turn).await;
    }
    written
}

/// The cell beside it is as it was, at once, and for each of its users.
async fn honest_cell_goes_on(client: &Client, seed: u64, turn: u64) {
    let (alice, bob) = (client.user(ALICE), client.user(BOB));
    let all = async {
        assert_eq!(bob.get("good.cell/known").await.unwrap(), KNOWN, "seed {seed}: turn {turn}");
        assert_eq!(alice.get("good.cell/private/secret").await.unwrap(), SECRET, "seed {seed}: turn {turn}");
        let denied = bob.get("good.cell/private/secret").await.map_err(|error| error.kind);
        assert_eq!(denied, Err(ErrorKind::AccessDenied), "seed {seed}: turn {turn}");
        let name = format!("good.cell/own{}", turn % 3);
        bob.put(&name, name.as_bytes()).await.unwrap();
        assert_eq!(alice.get(&name).await.unwrap(), name.as_bytes());
    };
    let done = client.env.timeout(Duration::from_secs(2), all).await;
    assert!(done.is_ok(), "seed {seed}: turn {turn}: the honest cell waits for the other one");
}

/// With an honest server both see what the other one stores, once what was told before is dropped.
fn works_again(scene: &Scene, seed: u64) {
    let (client, witness) = (scene.client.clone(), scene.witness.clone());
    scene.on(&scene.witness, async move { witness.put("bad.cell/of witness", b"honest").await.unwrap() });
    scene.on(&scene.client, async move {
        client.venus.set_property(NodeId::ROOT, b"afs.flush", b"all").await.unwrap();
        client.venus.set_property(NodeId::ROOT, b"afs.flush", b"locations").await.unwrap();
        client.venus.check_servers().await;
        assert_eq!(client.get("bad.cell/of witness").await.unwrap(), b"honest", "seed {seed}");
        client.put("bad.cell/of client", b"again").await.unwrap();
        client.env.sleep(Duration::from_secs(5)).await;
    });
    let witness = scene.witness.clone();
    let seen = scene.on(&scene.witness, async move { witness.get("bad.cell/of client").await.unwrap() });
    assert_eq!(seen, b"again", "seed {seed}");
}

/// At least so many bytes.
fn content(seed: u64, name: &str, least: usize) -> Vec<u8> {
    let line = format!("{name} of the world {seed}, which is nowhere else. ");
    line.repeat(200.max(least.div_ceil(line.len()))).into_bytes()
}

/// Those of the files that neither the server has, nor the client among the data that could not be stored.
fn not_found(scene: &Scene, written: Vec<(String, Vec<u8>)>, is_elsewhere: bool) -> Vec<String> {
    let witness = scene.witness.clone();
    let stored = scene.on(&scene.witness, async move { all_stored(&witness).await });
    let client = scene.client.clone();
    let unsaved = scene.on(&scene.client, async move { all_unsaved(&client).await });
    let is_stored = |name: &str, data: &[u8]| {
        stored
            .iter()
            .any(|(path, stored)| stored == data && (is_elsewhere || path == &format!("bad.cell/{name}")))
    };
    let lost = written.into_iter().filter(|(name, data)| !is_stored(name, data) && !unsaved.contains(data));
    lost.map(|(name, _)| name).collect()
}

/// The files of the cell by their paths, but for those that are longer than what is looked for.
async fn all_stored(witness: &Client) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for directory in ["bad.cell", "bad.cell/dir", "bad.cell/proj", "bad.cell/made"] {
        for name in witness.names(directory).await.unwrap_or_default() {
            let path = format!("{directory}/{name}");
            let size = witness.find(&path).await.map_or(u64::MAX, |entry| entry.attr.size);
            if size < 2 * PLACED as u64 {
                all.push((path.clone(), witness.get(&path).await.unwrap_or_default()));
            }
        }
    }
    all
}

/// The bytes of everything that could not be stored, as `andrew fs recover` copies them out.
async fn all_unsaved(client: &Client) -> Vec<Vec<u8>> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let listed: Vec<Unsaved> = client.venus.unsaved(ROOT_USER, after);
        let Some(last) = listed.last() else { return all };
        after = last.number;
        for unsaved in listed {
            all.push(whole(client, unsaved.number).await);
        }
    }
}

/// All pieces of what could not be stored; what is between them is no part of what is looked for.
async fn whole(client: &Client, number: u64) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), 0);
    while let Ok(piece) = client.venus.unsaved_piece(ROOT_USER, number, at).await {
        if piece.bytes.is_empty() {
            break;
        }
        at = piece.at + piece.bytes.len() as u64;
        bytes.extend(piece.bytes);
    }
    bytes
}
