//! Rights in earlier states of a volume follow the present: scenes, and a model over lists, snapshots, removals and restores.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod model;

use crate::rig;

use std::time::Duration;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText};
use afs_wire::ids::{Fid, PartitionNumber, Rights, VolumeId, VolumeKind};
use afs_wire::vol::{self, AttachFlags, TransactionId, VolumeFlags};
use rig::{Cell, Claim, Client, Heard};

const A: PartitionNumber = PartitionNumber(0);
const EACCES: fn() -> AbortCode = || Errno::EACCES.to_uae();

fn text(entries: &str) -> AclText {
    AclText::new(format!("{entries}\0").into_bytes()).unwrap()
}

/// Alice has all rights, everybody these.
fn set_list(client: &Client, dir: Fid, everybody: Rights) {
    let acl = text(&format!("2\n0\nalice\t127\nsystem:anyuser\t{}\n", everybody.0));
    client.ask(fs::StoreAcl { fid: dir, acl }).unwrap();
}

fn clear() -> AclText {
    text("0\n0\n")
}

fn take(owner: &Client, volume: VolumeId, flags: AttachFlags) -> TransactionId {
    owner.ask(vol::TransCreate { volume, partition: A, flags }).unwrap().transaction
}

/// An earlier state of a volume, in service.
fn keep(cell: &Cell, volume: VolumeId, kind: VolumeKind, name: &str, id: u32) -> VolumeId {
    let owner = cell.owner();
    let busy = take(&owner, volume, AttachFlags::BUSY);
    let name = vol::NameText::new(name.as_bytes()).unwrap();
    let (purge, kind) = (VolumeId(0), kind.into());
    owner.ask(vol::Clone { transaction: busy, purge, kind, name, volume: VolumeId(id) }).unwrap();
    owner.ask(vol::EndTrans { transaction: busy }).unwrap();
    let transaction = take(&owner, VolumeId(id), AttachFlags::OFFLINE);
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags(0) }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    cell.sim.run_for(Duration::from_secs(2));
    VolumeId(id)
}

fn at(fid: Fid, volume: VolumeId) -> Fid {
    Fid { volume, ..fid }
}

struct Scene {
    cell: Cell,
    alice: Client,
    stranger: Client,
    /// Everybody reads it, and a file of Alice's in it.
    open: Fid,
    letter: Fid,
    monday: VolumeId,
}

/// A directory of Alice's that everybody could read on Monday.
fn scene(seed: u64) -> Scene {
    let cell = Cell::with(seed, Default::default(), "l");
    let owner = cell.owner();
    let (alice, stranger) = (cell.client(1).acting_as(&Claim::of("alice")), cell.client(2));
    let open = owner.make_dir(cell.root(), "open").unwrap().fid;
    set_list(&owner, open, Rights::READ | Rights::LOOKUP);
    let letter = alice.create(open, "letter").unwrap().fid;
    alice.store(letter, 0, b"dear Bob").unwrap();
    let monday = keep(&cell, cell.root().volume, VolumeKind::Backup, "root.cell.monday", 910);
    assert_eq!(stranger.read(at(letter, monday)), b"dear Bob");
    Scene { cell, alice, stranger, open, letter, monday }
}

#[test]
fn what_a_list_withholds_today_is_withheld_in_snapshots_backups_and_clones() {
    let Scene { cell, alice, stranger, open, letter, monday } = scene(1);
    let root = cell.root().volume;
    let backup = keep(&cell, root, VolumeKind::Backup, "root.cell.backup", 911);
    let clone = keep(&cell, root, VolumeKind::ReadOnly, "root.cell.clone", 912);
    let released = keep(&cell, root, VolumeKind::ReadOnly, "root.cell.readonly", 913);
    alice.remove(open, "letter").unwrap();
    set_list(&alice, open, Rights::NONE);
    for past in [monday, backup, clone] {
        assert_eq!(
            stranger.fetch(at(letter, past), 0, 10).unwrap_err().abort_code(),
            Some(EACCES()),
            "{past}"
        );
        assert_eq!(stranger.refusal(fs::FetchStatus { fid: at(letter, past) }), EACCES());
        assert_eq!(stranger.fetch(at(open, past), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
        assert_eq!(stranger.refusal(fs::FetchAcl { fid: at(open, past) }), EACCES());
        let shown = stranger.fetch_status(at(open, past)).unwrap().status;
        assert_eq!((shown.caller_access, shown.anonymous_access), (Rights::NONE, Rights::NONE));
        assert_eq!(alice.read(at(letter, past)), b"dear Bob", "her own list of today gives it to her");
    }
    assert_eq!(stranger.read(at(letter, released)), b"dear Bob", "what was released is what it was");
    set_list(&alice, open, Rights::READ | Rights::LOOKUP);
    assert_eq!(stranger.read(at(letter, monday)), b"dear Bob");
}

/// What a list gives today it does not give in a state that had another list.
#[test]
fn the_list_of_the_day_still_counts_too() {
    let Scene { cell, alice, stranger, open, letter, .. } = scene(2);
    set_list(&alice, open, Rights::NONE);
    let tuesday = keep(&cell, cell.root().volume, VolumeKind::Backup, "root.cell.tuesday", 911);
    set_list(&alice, open, Rights::READ | Rights::LOOKUP);
    assert_eq!(stranger.read(letter), b"dear Bob");
    assert_eq!(stranger.fetch(at(letter, tuesday), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
}

#[test]
fn a_removed_directory_follows_the_nearest_above_it_that_still_is() {
    let Scene { cell, alice, stranger, open, .. } = scene(3);
    let inner = alice.make_dir(open, "inner").unwrap().fid;
    let deep = alice.make_dir(inner, "deep").unwrap().fid;
    let note = alice.create(deep, "note").unwrap().fid;
    let tuesday = keep(&cell, cell.root().volume, VolumeKind::Backup, "root.cell.tuesday", 911);
    let reads =
        |client: &Client| client.fetch(at(note, tuesday), 0, 10).map(|_| ()).map_err(|e| e.abort_code());
    alice.remove(deep, "note").unwrap();
    alice.remove_dir(inner, "deep").unwrap();
    assert_eq!(reads(&stranger), Ok(()), "its directory is open");
    set_list(&alice, inner, Rights::NONE);
    assert_eq!(reads(&stranger), Err(Some(EACCES())));
    alice.remove_dir(open, "inner").unwrap();
    assert_eq!(reads(&stranger), Ok(()), "that above is open");
    set_list(&alice, open, Rights::LOOKUP);
    assert_eq!(reads(&stranger), Err(Some(EACCES())));
    // The number is used again, for a directory that everybody reads.
    let other = alice.make_dir(open, "other").unwrap().fid;
    assert_eq!((other.vnode, other.unique == deep.unique), (inner.vnode, false));
    set_list(&alice, other, Rights::READ | Rights::LOOKUP);
    assert_eq!(reads(&stranger), Err(Some(EACCES())));
}

/// A bound for the work that a deep tree makes.
#[test]
fn what_is_deeper_than_is_looked_at_is_for_administrators() {
    let Scene { cell, alice, stranger, open, .. } = scene(10);
    let mut deep = vec![open];
    for depth in 0..1100 {
        let above = deep[depth];
        deep.push(alice.make_dir(above, "d").unwrap().fid);
    }
    let [shallow, bottom] = [deep[500], deep[1100]];
    let tuesday = keep(&cell, cell.root().volume, VolumeKind::Backup, "root.cell.tuesday", 911);
    let lists = |client: &Client, dir| client.fetch(at(dir, tuesday), 0, 1).is_ok();
    assert!(lists(&stranger, shallow) && lists(&stranger, bottom), "both are still there");
    alice.ask(fs::StoreAcl { fid: at(deep[1090], tuesday), acl: clear() }).unwrap();
    assert!(lists(&stranger, shallow) && !lists(&stranger, bottom) && !lists(&alice, deep[1080]));
    assert!(lists(&cell.owner(), deep[1080]));
}

#[test]
fn the_mode_of_a_file_today_counts_in_the_past() {
    let Scene { cell: _cell, alice, stranger, letter, monday, .. } = scene(4);
    let status = fs::SetStatus { mode: Some(afs_wire::ids::Mode(0)), ..Default::default() };
    alice.ask(fs::StoreStatus { fid: letter, status }).unwrap();
    assert_eq!(stranger.fetch(at(letter, monday), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
    assert_eq!(alice.read(at(letter, monday)), b"dear Bob");
}

/// Each change of rights reaches those who hold promises on the earlier state.
#[test]
fn a_change_of_rights_ends_the_promises_on_earlier_states() {
    let Scene { cell, alice, stranger, open, letter, monday } = scene(5);
    let empty = alice.make_dir(open, "empty").unwrap().fid;
    let broken = [Heard::Break(vec![Fid::whole_volume(monday)])];
    let status = fs::SetStatus { mode: Some(afs_wire::ids::Mode(0o600)), ..Default::default() };
    let changes: [&dyn Fn(); 3] = [
        &|| set_list(&alice, open, Rights::READ | Rights::LOOKUP | Rights::LOCK),
        &|| _ = alice.remove_dir(open, "empty").unwrap(),
        &|| _ = alice.ask(fs::StoreStatus { fid: letter, status }).unwrap(),
    ];
    for change in changes {
        stranger.fetch_status(at(letter, monday)).unwrap();
        stranger.heard();
        change();
        cell.sim.run_for(Duration::from_secs(1));
        assert_eq!(stranger.heard(), broken);
    }
    assert!(empty.is_directory());
}

/// Its capability would not end with the list of today.
#[test]
fn no_capability_is_given_for_a_file_in_an_earlier_state() {
    let Scene { cell, alice, letter, monday, .. } = scene(6);
    cell.open_data_path();
    assert!(alice.capability(letter, fs::CapabilityAccess::READ).is_ok());
    let refused = alice.capability(at(letter, monday), fs::CapabilityAccess::READ).unwrap_err();
    assert_eq!(refused.abort_code(), Some(EACCES()));
}

#[test]
fn the_past_of_a_directory_is_closed_by_who_administers_it_and_opened_by_administrators() {
    let Scene { cell, alice, stranger, open, letter, monday } = scene(7);
    let inner = alice.make_dir(open, "inner").unwrap().fid;
    let note = alice.create(inner, "note").unwrap().fid;
    alice.store(note, 0, b"secret").unwrap();
    let tuesday = keep(&cell, cell.root().volume, VolumeKind::Backup, "root.cell.tuesday", 911);
    let wednesday = keep(&cell, cell.root().volume, VolumeKind::Backup, "root.cell.wednesday", 912);
    let owner = cell.owner();
    let store = |client: &Client, fid, acl: AclText| client.ask(fs::StoreAcl { fid, acl });
    let refused = |client: &Client, fid, acl| store(client, fid, acl).unwrap_err().abort_code();
    assert_eq!(refused(&stranger, at(open, tuesday), clear()), Some(EACCES()));
    assert_eq!(refused(&alice, at(letter, tuesday), clear()), Some(Errno::ENOTDIR.to_uae()));
    let other = text("1\n0\nalice\t127\n");
    assert_eq!(refused(&alice, at(open, tuesday), other.clone()), Some(Errno::EROFS.to_uae()));
    assert_eq!(refused(&owner, at(open, tuesday), other), Some(Errno::EROFS.to_uae()));
    let own = owner.ask(fs::FetchAcl { fid: at(open, tuesday) }).unwrap().acl;
    assert_eq!(refused(&owner, at(open, tuesday), own.clone()), Some(Errno::ENOENT.to_uae()), "not closed");

    stranger.fetch_status(at(letter, monday)).unwrap();
    stranger.heard();
    store(&alice, at(open, tuesday), clear()).unwrap();
    cell.sim.run_for(Duration::from_secs(1));
    assert!(stranger.heard().contains(&Heard::Break(vec![Fid::whole_volume(monday)])));
    for client in [&alice, &stranger] {
        for fid in [at(letter, monday), at(letter, tuesday), at(note, tuesday)] {
            assert_eq!(client.fetch(fid, 0, 10).unwrap_err().abort_code(), Some(EACCES()), "{fid}");
        }
        assert_eq!(client.fetch_status(at(open, monday)).unwrap().status.caller_access, Rights::NONE);
        assert_eq!(client.read(at(note, wednesday)), b"secret", "a later state");
        assert_eq!(client.read(note), b"secret", "the present");
    }
    // What is removed stays closed, and so does what is closed already.
    alice.remove(inner, "note").unwrap();
    alice.remove_dir(open, "inner").unwrap();
    store(&alice, at(open, monday), clear()).unwrap();
    assert_eq!(stranger.fetch(at(note, tuesday), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
    assert_eq!(refused(&alice, at(open, tuesday), own.clone()), Some(Errno::EPERM.to_uae()));
    assert_eq!(owner.ask(fs::FetchAcl { fid: at(open, tuesday) }).unwrap().acl, own, "for who opens it");
    store(&owner, at(open, tuesday), own).unwrap();
    assert_eq!(stranger.read(at(letter, monday)), b"dear Bob");
    assert_eq!(stranger.read(at(note, tuesday)), b"secret");
}

#[test]
fn a_state_whose_read_write_volume_is_gone_is_for_administrators() {
    let Scene { cell, alice, stranger, letter, monday, .. } = scene(8);
    let copy = keep(&cell, cell.root().volume, VolumeKind::ReadOnly, "root.cell.copy", 911);
    let owner = cell.owner();
    let transaction = take(&owner, cell.root().volume, AttachFlags::OFFLINE);
    owner.ask(vol::DeleteVolume { transaction }).unwrap();
    for client in [&alice, &stranger] {
        assert_eq!(client.fetch(at(letter, monday), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
    }
    assert!(owner.fetch_status(at(letter, monday)).is_ok());
    assert_eq!(stranger.read(at(letter, copy)), b"dear Bob", "a read-only volume stands alone");
}

#[test]
fn what_is_closed_stays_closed_in_a_power_failure_and_in_a_restore() {
    let Scene { mut cell, alice, open, letter, monday, .. } = scene(9);
    alice.ask(fs::StoreAcl { fid: at(open, monday), acl: clear() }).unwrap();
    cell.restart_after_power_failure(&mut afs_sim::crash::Rng(9));
    let stranger = cell.client(3);
    assert_eq!(stranger.fetch(at(letter, monday), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
    model::restore(&cell, cell.root().volume, monday);
    assert_eq!(stranger.fetch(at(letter, monday), 0, 10).unwrap_err().abort_code(), Some(EACCES()));
    assert_eq!(stranger.read(letter), b"dear Bob", "restored, it is the present");
}
