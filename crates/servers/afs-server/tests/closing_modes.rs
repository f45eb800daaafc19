//! Modes that close directories, in volumes with that setting and in others.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_wire::error::Errno;
use afs_wire::fs::{self, AclText, SetStatus};
use afs_wire::ids::{Fid, Mode, PartitionNumber};
use afs_wire::vol::{self, AttachFlags, Modes, Privacy};
use rig::{Cell, Claim, Client, Heard};

const OPEN: &str = "4\n1\nsystem:authuser\t1\nsystem:anyuser\t9\nalice\t127\nbob\t9\nsystem:anyuser\t2\n";
const CLOSED: &str = "2\n1\nalice\t127\nbob\t9\nsystem:anyuser\t2\n";

fn list(client: &Client, fid: Fid) -> String {
    client.ask(fs::FetchAcl { fid }).unwrap().acl.to_string().trim_end_matches('\0').to_owned()
}

fn give_mode(client: &Client, fid: Fid, bits: u32) -> fs::StatusReply {
    let status = SetStatus { mode: Some(Mode(bits)), ..SetStatus::default() };
    client.ask(fs::StoreStatus { fid, status }).unwrap()
}

/// A cell whose root volume has the setting, a directory of Alice's that everybody reads, Alice, Bob and a stranger.
fn scene(seed: u64, modes: Modes) -> (Cell, Fid, [Client; 3]) {
    let cell = Cell::with(seed, Default::default(), "l");
    let owner = cell.owner();
    let (volume, partition, flags) = (cell.root().volume, PartitionNumber(0), AttachFlags::BUSY);
    let transaction = owner.ask(vol::TransCreate { volume, partition, flags }).unwrap().transaction;
    let privacy = Privacy { modes, ..Privacy::default() };
    owner.ask(vol::SetPrivacy { transaction, privacy: privacy.clone() }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert_eq!(owner.ask(vol::GetPrivacy { volume }).unwrap().privacy, privacy);
    let fid = owner.make_dir(cell.root(), "home").unwrap().fid;
    owner.ask(fs::StoreAcl { fid, acl: AclText::new(format!("{OPEN}\0")).unwrap() }).unwrap();
    let users = [cell.client(1).acting_as(&Claim::of("alice")), cell.client(2).acting_as(&Claim::of("bob"))];
    let [alice, bob] = users;
    let stranger = cell.client(3);
    (cell, fid, [alice, bob, stranger])
}

#[test]
fn a_mode_without_bits_for_others_takes_everybody_off_the_list_where_the_volume_has_it_so() {
    let (cell, home, [alice, bob, stranger]) = scene(1, Modes::Close);
    let key = alice.create(home, "key").unwrap().fid;
    for still in [0o755, 0o750, 0o701] {
        give_mode(&alice, home, still);
        assert_eq!(list(&alice, home), OPEN, "{still:o}");
    }
    stranger.fetch_status(home).unwrap();
    alice.fetch_status(home).unwrap();
    drop((stranger.heard(), alice.heard()));
    let status = give_mode(&alice, home, 0o700).status;
    assert_eq!((list(&alice, home).as_str(), status.anonymous_access), (CLOSED, afs_wire::ids::Rights::NONE));
    cell.sim.run_for(Duration::from_secs(1));
    let broken = [Heard::Break(vec![home])];
    assert_eq!(
        (stranger.heard(), alice.heard()),
        (broken.to_vec(), broken.to_vec()),
        "her machine has other users"
    );
    assert_eq!(stranger.fetch(key, 0, 1).unwrap_err().abort_code(), Some(Errno::EACCES.to_uae()));
    bob.fetch(key, 0, 1).unwrap();
    give_mode(&alice, home, 0o755);
    assert_eq!(list(&alice, home), CLOSED, "no mode opens");
}

#[test]
fn a_directory_is_made_closed_by_its_mode() {
    let (_cell, home, [alice, _, stranger]) = scene(2, Modes::Close);
    let make = |name: &str, bits| {
        let status = SetStatus { mode: Some(Mode(bits)), ..SetStatus::default() };
        alice.ask(fs::MakeDir { dir: home, name: rig::name(name), status }).unwrap()
    };
    let (ssh, public) = (make(".ssh", 0o700), make("public", 0o755));
    assert_eq!((list(&alice, ssh.fid).as_str(), list(&alice, public.fid).as_str()), (CLOSED, OPEN));
    assert_eq!(ssh.status.anonymous_access, afs_wire::ids::Rights::NONE);
    let key = alice.create(ssh.fid, "id_ed25519").unwrap().fid;
    assert_eq!(stranger.fetch(key, 0, 1).unwrap_err().abort_code(), Some(Errno::EACCES.to_uae()));
}

/// As in AFS-3: with the default setting, by who may not change the list, and of files.
#[test]
fn a_mode_changes_no_list_where_it_is_not_to() {
    let (_cell, home, [alice, ..]) = scene(3, Modes::Ignored);
    give_mode(&alice, home, 0o700);
    assert_eq!(list(&alice, home), OPEN);
    let (cell, home, [alice, ..]) = scene(4, Modes::Close);
    let key = alice.create(home, "key").unwrap().fid;
    give_mode(&alice, key, 0o600);
    let writers = OPEN.replace("bob\t9", "bob\t63");
    alice.ask(fs::StoreAcl { fid: home, acl: AclText::new(format!("{writers}\0")).unwrap() }).unwrap();
    let bob = cell.client(5).acting_as(&Claim::of("bob"));
    give_mode(&bob, home, 0o700);
    assert_eq!(list(&alice, home), writers);
}
