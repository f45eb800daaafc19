//! A file server of the cell whose volume service lies in its replies: the tool ends, and no volume of another server suffers.
//!
//! `ANDREW_SEEDS=N` runs N worlds for each lie, `ANDREW_SEED=S` the one of that seed.

mod operations;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use afs_admin::{Admin, AdminResult, CreateOptions, ServerPartition};
use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_testkit::allocated;
use afs_testkit::relay::{Delivered, Liar, Lie, LiePlan, Relay};
use afs_wire::ids::{PartitionId, VolumeId, VolumeKind};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{GetEntryByIdN, RegisterAddrs, SiteFlags};
use afs_wire::xdr::BoundedVec;

use crate::real::cell::{Cell, place};
use crate::real::content::{Content, content, write};
use operations::{OPERATIONS, operation};

/// Where the tool meets the third server.
const LIAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
const VOLUMES: u16 = 7005;
/// Longest that an operation takes, whatever the server says.
const OPERATION_MAX: Duration = Duration::from_secs(1100);
/// Most memory of all machines of a world together, above what the world has at first.
const MEMORY_MAX: isize = 64 << 20;
const TURNS: u32 = 12;
/// Lies that need no knowledge of the call.
const LIES: [Lie; 7] = [
    Lie::Truncated,
    Lie::OverLong,
    Lie::Extreme,
    Lie::OfAnotherCall,
    Lie::Earlier,
    Lie::Refused,
    Lie::Unmade,
];
/// Calls about which lies are told: all that the tool makes of the volume service in these operations.
const CALLS: [&str; 30] = [
    "Clone",
    "CreateVolume",
    "DeleteVolume",
    "Dump",
    "DumpFormats",
    "EndTrans",
    "Forward",
    "GetLending",
    "GetPlacement",
    "GetPrivacy",
    "GetRoute",
    "GetSize",
    "GetStatus",
    "ListOneVolume",
    "ListSnapshots",
    "ListVolumes",
    "Monitor",
    "PartitionInfo64",
    "Restore",
    "SetDate",
    "SetFlags",
    "SetForwarding",
    "SetIdsTypes",
    "SetInfo",
    "SetLending",
    "SetPlacement",
    "SetPrivacy",
    "SetRoute",
    "TransCreate",
    "XListPartitions",
];

/// A site at the server that lies.
fn lying(partition: u8) -> ServerPartition {
    ServerPartition::new(LIAR, PartitionId(partition))
}

#[test]
fn no_lie_of_a_volume_service_harms_volumes_of_other_servers() {
    for lie in LIES {
        let plan = || LiePlan { lies: vec![lie], about: None, per_million: 200_000 };
        let told: u64 = seeds(3).map(|seed| count(&world(seed, plan()))).sum();
        assert!(told > 0 || is_single(), "{lie:?} was never told");
    }
}

#[test]
fn no_lie_about_any_call_does() {
    let is_told = |call: &&'static str| {
        let plan = LiePlan { lies: LIES.to_vec(), about: Some(*call), per_million: 600_000 };
        (100..130).any(|seed| count(&world(seed, plan.clone())) > 0)
    };
    let never: Vec<&str> = CALLS.into_iter().filter(|call| !is_told(call)).collect();
    assert_eq!(never, [""; 0], "no lie about them was told");
}

/// The same seed must give the same run, or a failing seed could not be reproduced.
#[test]
fn the_lies_of_a_seed_are_the_same_twice() {
    let plan = || LiePlan { lies: LIES.to_vec(), about: None, per_million: 200_000 };
    assert_eq!(world(5, plan()), world(5, plan()));
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

fn count(told: &Delivered) -> u64 {
    told.values().sum()
}

/// A volume at an honest server that no operation names, with what it has.
struct Kept {
    id: VolumeId,
    place: ServerPartition,
    content: Content,
}

/// What was told in a world of that seed.
fn world(seed: u64, plan: LiePlan) -> Delivered {
    let (cell, liar) = cell_with_liar(seed);
    let mut kept = [volume(&cell, "kept0", place(0, 0)), volume(&cell, "kept1", place(1, 0))];
    let moved = volume(&cell, "moved", place(0, 1));
    create(&cell, "lied", lying(0)).expect("nothing is a lie yet");
    let (before, _) = (allocated::held(), allocated::most_since());
    liar.tell(plan.clone());
    let mut rng = SimRng::new(seed);
    for turn in 0..TURNS {
        let kind = rng.between(0, OPERATIONS - 1);
        let what = format!("seed {seed}, {plan:?}: turn {turn} with operation {kind}");
        perform(&cell, operation(kind, turn, &mut rng), &what);
        kept.iter_mut().for_each(|kept| is_as_it_was(&cell, kept, &what));
        assert!(honest_sites(&cell).any(|at| has(&cell, at, &moved)), "{what}: a volume of honest servers");
    }
    liar.tell(LiePlan::default());
    let most = allocated::most_since() - before;
    assert!(most < MEMORY_MAX, "seed {seed}: {} MiB", most >> 20);
    // With an honest server the cell works again.
    cell.sim.run_for(Duration::from_secs(900));
    create(&cell, "afterwards", lying(1)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    kept.iter_mut().for_each(|kept| is_as_it_was(&cell, kept, "afterwards"));
    liar.told()
}

/// Three file servers, the last of which is known by the address of a relay.
fn cell_with_liar(seed: u64) -> (Cell, Arc<Liar>) {
    let cell = Cell::new(seed, 3);
    let liar = Arc::new(Liar::new(seed));
    let server = &cell.servers[2];
    Relay::start(&cell.sim.world(), LIAR, server.address, &[(ServiceId::VOLUME, VOLUMES)], &liar);
    let addresses = BoundedVec::first_of([LIAR]);
    cell.tell_databases(RegisterAddrs { uuid: server.uuid(), spare: 0, addresses });
    (cell, liar)
}

fn create(cell: &Cell, name: &str, place: ServerPartition) -> AdminResult<VolumeId> {
    let options = CreateOptions { name: name.into(), place, quota: 0, id: None };
    cell.run(|admin| async move { admin.create(options).await })
}

fn volume(cell: &Cell, name: &str, place: ServerPartition) -> Kept {
    let id = create(cell, name, place).unwrap();
    write(cell, place, id, "letter", name.repeat(1000).as_bytes());
    Kept { id, place, content: content(cell, place, id) }
}

/// Runs an operation with whatever outcome; it must have one.
fn perform(cell: &Cell, work: operations::Work, what: &str) {
    let env = cell.sim.env(cell.tool);
    let done =
        cell.run(|admin: Admin| async move { Ok(env.timeout(OPERATION_MAX, work(admin)).await.is_ok()) });
    assert!(done.unwrap_or_default(), "{what} does not end");
}

fn is_as_it_was(cell: &Cell, kept: &Kept, what: &str) {
    assert_eq!(content(cell, kept.place, kept.id), kept.content, "{what}: {}", kept.id);
    let entry = cell.ask_databases(GetEntryByIdN { volume: kept.id, kind: VolumeKind::ReadWrite.into() });
    let home = entry.entry.sites.iter().find(|site| site.flags.contains(SiteFlags::RW_VOLUME));
    assert_eq!(home.map(ServerPartition::from), Some(kept.place), "{what}: {}", kept.id);
}

fn honest_sites(_: &Cell) -> impl Iterator<Item = ServerPartition> {
    (0..2).flat_map(|server| (0..2).map(move |partition| place(server, partition)))
}

fn has(cell: &Cell, at: ServerPartition, kept: &Kept) -> bool {
    cell.volumes(at).contains(&kept.id) && content(cell, at, kept.id) == kept.content
}
