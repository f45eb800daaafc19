//! Changes acknowledged before a volume becomes busy are in its clone, and none is admitted afterwards.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::collections::BTreeSet;
use std::time::Duration;

use afs_wire::error::AbortCode;
use afs_wire::ids::{DataVersion, Fid, KindNumber, PartitionNumber, VolumeId};
use afs_wire::vol::{self, AttachFlags, TransactionId, VolumeFlags};
use rig::{Cell, Client};

const A: PartitionNumber = PartitionNumber(0);
const CLONE: VolumeId = VolumeId(901);
const SEEDS: u64 = 150;

fn take(owner: &Client, volume: VolumeId, flags: AttachFlags) -> TransactionId {
    owner.ask(vol::TransCreate { volume, partition: A, flags }).unwrap().transaction
}

fn clone(owner: &Client, transaction: TransactionId) {
    let name = vol::NameText::new(b"gate.readonly".as_slice()).unwrap();
    let kind = KindNumber(1);
    owner.ask(vol::Clone { transaction, purge: VolumeId(0), kind, name, volume: CLONE }).unwrap();
    let opened = take(owner, CLONE, AttachFlags::OFFLINE);
    owner.ask(vol::SetFlags { transaction: opened, flags: VolumeFlags(0) }).unwrap();
    owner.ask(vol::EndTrans { transaction: opened }).unwrap();
}

/// A store in progress when the volume is taken is in it before the transaction begins, or is refused.
#[test]
fn a_store_under_way_is_in_the_clone_or_refused() {
    let (mut in_time, mut too_late) = (0, 0);
    for seed in 0..SEEDS {
        let cell = Cell::new(1000 + seed);
        let (client, owner) = (cell.client(1), cell.owner());
        let mut rng = cell.sim.fork_rng();
        let fid = client.create(cell.root(), "f").unwrap().fid;
        // More than a window, so that the data takes its time.
        let outcome = client.begin_store(fid, vec![seed as u8; 300_000]);
        cell.sim.run_for(rng.duration(Duration::ZERO, Duration::from_millis(60)));
        let busy = take(&owner, fid.volume, AttachFlags::BUSY);
        let at_once = cell.version(fid);
        let told =
            outcome.lock().unwrap().as_ref().map(|answer| answer.as_ref().unwrap().status.data_version);
        assert!(
            told.is_none_or(|version| version == at_once),
            "seed {seed}: an acknowledged store is missing"
        );
        cell.sim.run_until(Duration::from_secs(60), || outcome.lock().unwrap().is_some()).unwrap();
        assert_eq!(cell.version(fid), at_once, "seed {seed}: a store came in after the volume was taken");
        match outcome.lock().unwrap().take().unwrap() {
            Ok(stored) => {
                assert_eq!(stored.status.data_version, at_once, "seed {seed}");
                in_time += 1;
            }
            Err(error) => {
                assert_eq!(
                    (error.abort_code(), at_once),
                    (Some(AbortCode::VBUSY), DataVersion(0)),
                    "seed {seed}"
                );
                too_late += 1;
            }
        }
        clone(&owner, busy);
        let copy = Fid { volume: CLONE, ..fid };
        assert_eq!(owner.fetch_status(copy).unwrap().status.data_version, at_once, "seed {seed}");
        owner.ask(vol::EndTrans { transaction: busy }).unwrap();
        client.store(fid, 0, b"afterwards").unwrap();
        assert_eq!(owner.fetch_status(copy).unwrap().status.data_version, at_once, "seed {seed}");
    }
    assert!(in_time > 0 && too_late > 0, "both happen: {in_time} in time, {too_late} too late");
}

/// Several clients create files all the time; a clone has exactly those acknowledged before, and perhaps some
/// that were acknowledged after.
#[test]
fn a_clone_has_what_was_acknowledged_before_it() {
    for seed in 0..SEEDS / 3 {
        let cell = Cell::new(3000 + seed);
        let (owner, clients) = (cell.owner(), [1, 2, 3].map(|number| cell.client(number)));
        let mut rng = cell.sim.fork_rng();
        let names =
            |wave: u64| clients.iter().enumerate().map(move |(n, client)| (format!("f{wave}-{n}"), client));
        let mut begun = Vec::new();
        for wave in 0..6 {
            for (name, client) in names(wave) {
                let status = rig::mode(0o644);
                let request = afs_wire::fs::CreateFile { dir: cell.root(), name: rig::name(&name), status };
                begun.push((name, client.begin(request)));
            }
            cell.sim.run_for(rng.duration(Duration::ZERO, Duration::from_millis(3)));
        }
        let acknowledged = |begun: &[(String, _)]| -> BTreeSet<String> { made(begun) };
        let busy = take(&owner, cell.root().volume, AttachFlags::BUSY);
        let before = acknowledged(&begun);
        clone(&owner, busy);
        cell.sim.run_for(Duration::from_secs(5));
        let in_the_end = acknowledged(&begun);
        let in_clone: BTreeSet<String> = begun
            .iter()
            .filter(|(name, _)| has(&owner, Fid::root(CLONE), name))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(before.is_subset(&in_clone), "seed {seed}: {before:?} but {in_clone:?}");
        assert_eq!(in_clone, in_the_end, "seed {seed}: somebody was told of a file that came too late");
        owner.ask(vol::EndTrans { transaction: busy }).unwrap();
    }
}

/// OpenAFS's clients wait 15 s when they get VBUSY, and the volume service has the volume for moments.
#[test]
fn a_change_waits_for_a_volume_that_is_busy_for_a_moment() {
    let cell = Cell::new(5000);
    let (client, owner) = (cell.client(1), cell.owner());
    let fid = client.create(cell.root(), "f").unwrap().fid;
    let begin = |name: &str| {
        let status = rig::mode(0o644);
        client.begin(afs_wire::fs::CreateFile { dir: cell.root(), name: rig::name(name), status })
    };
    let busy = take(&owner, fid.volume, AttachFlags::BUSY);
    let (made, stored) = (begin("g"), client.begin_store(fid, b"stored".to_vec()));
    cell.sim.run_for(Duration::from_secs(2));
    assert!(made.lock().unwrap().is_none() && stored.lock().unwrap().is_none(), "they wait");
    assert!(client.fetch_status(fid).is_ok(), "reads go on");
    owner.ask(vol::EndTrans { transaction: busy }).unwrap();
    cell.sim.run_for(Duration::from_secs(1));
    assert!(made.lock().unwrap().take().is_some_and(|made| made.is_ok()));
    assert!(stored.lock().unwrap().take().is_some_and(|stored| stored.is_ok()));

    // During an operation that lasts, calls do not wait.
    let busy = take(&owner, fid.volume, AttachFlags::BUSY);
    let made = begin("h");
    cell.sim.run_for(Duration::from_secs(8));
    let code = made.lock().unwrap().take().and_then(|made| made.err()).and_then(|error| error.abort_code());
    assert_eq!(code, Some(AbortCode::VBUSY));
    // A volume that goes off line while it is held, as at the switch of a move: its next state is reported.
    let made = begin("i");
    let flags = VolumeFlags::OUT_OF_SERVICE;
    owner.ask(vol::SetFlags { transaction: busy, flags }).unwrap();
    cell.sim.run_for(Duration::from_secs(2));
    assert!(made.lock().unwrap().is_none());
    owner.ask(vol::EndTrans { transaction: busy }).unwrap();
    cell.sim.run_for(Duration::from_secs(1));
    let code = made.lock().unwrap().take().and_then(|made| made.err()).and_then(|error| error.abort_code());
    assert_eq!(code, Some(AbortCode::VOFFLINE));
}

type Begun = std::sync::Arc<std::sync::Mutex<Option<rig::CallResult<afs_wire::fs::CreateReply>>>>;

fn made(begun: &[(String, Begun)]) -> BTreeSet<String> {
    let done = begun.iter().filter(|(_, outcome)| matches!(&*outcome.lock().unwrap(), Some(Ok(_))));
    done.map(|(name, _)| name.clone()).collect()
}

/// Whether a directory has a name, by its pages.
fn has(client: &Client, dir: Fid, name: &str) -> bool {
    let pages = client.read(dir);
    let needle = [name.as_bytes(), b"\0"].concat();
    pages.windows(needle.len()).any(|window| window == needle)
}
