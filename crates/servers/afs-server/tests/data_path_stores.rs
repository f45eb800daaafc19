//! The data path: what a store may change, and what ends one in progress.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_datapath::capability::{Access, Group, Refusal};
use afs_datapath::session::{Error, Failure};
use afs_wire::error::Errno;
use afs_wire::fs::{self, AclText};
use afs_wire::ids::{Fid, PartitionNumber};
use afs_wire::vol::{self, AttachFlags};
use rig::drive::{BOTH, Path, READ, WRITE, arguments};
use rig::people::{CAROL, TEAM};
use rig::{Cell, Claim, Client, mode};

const MIB: u64 = 1 << 20;

fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

/// A cell with a file that carol may write as one of the staff.
struct Writing {
    cell: Cell,
    owner: Client,
    dir: Fid,
    fid: Fid,
    path: Path,
}

impl Writing {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        cell.open_data_path();
        let owner = cell.owner();
        let carol = cell.client(1).acting_as(&Claim::of("carol"));
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        owner.ask(fs::StoreAcl { fid: dir, acl: acl("2\n0\nadmin:staff\t127\nadmin\t127\n") }).unwrap();
        let fid = owner.create(dir, "f").unwrap().fid;
        let path = carol.path();
        Writing { cell, owner, dir, fid, path }
    }

    /// How a store ends during which something happens.
    fn store_during(&self, happens: impl FnOnce(&Self)) -> Option<Error> {
        let handle = self.path.handle(self.fid, WRITE);
        let leaving = self.path.leave(&handle, self.fid, &[(0, 4 * MIB)]).unwrap();
        let (leaving, put) = self.path.put(leaving, vec![1; MIB as usize]);
        put.unwrap();
        self.cell.sim.run_for(Duration::from_secs(1));
        happens(self);
        let (leaving, put) = self.path.put(leaving, vec![1; 3 * MIB as usize]);
        put.and_then(|()| self.path.finish(leaving)).err()
    }
}

fn refused(refusal: Refusal) -> Option<Error> {
    Some(Error::Failed(Failure::Refused(refusal)))
}

#[test]
fn a_store_that_nobody_disturbs_becomes_a_ticket() {
    assert_eq!(Writing::new(451).store_during(|_| {}), None);
}

#[test]
fn who_leaves_the_group_stores_no_further() {
    let ended = Writing::new(452).store_during(|writing| writing.cell.people.remove(CAROL, TEAM));
    assert_eq!(ended, refused(Refusal::Revoked));
}

#[test]
fn another_access_list_ends_a_store() {
    let ended = Writing::new(453).store_during(|writing| {
        writing.owner.ask(fs::StoreAcl { fid: writing.dir, acl: acl("1\n0\nadmin\t127\n") }).unwrap();
    });
    assert_eq!(ended, refused(Refusal::Revoked));
}

#[test]
fn a_mode_that_forbids_it_ends_a_store() {
    let writing = Writing::new(454);
    let set = |bits| {
        move |writing: &Writing| {
            writing.owner.ask(fs::StoreStatus { fid: writing.fid, status: mode(bits) }).unwrap();
        }
    };
    assert_eq!(writing.store_during(set(0o200)), None, "a mode that permits it does not");
    assert_eq!(writing.store_during(set(0o400)), refused(Refusal::NotAllowed));
}

#[test]
fn a_move_to_another_directory_ends_a_store() {
    let ended = Writing::new(455).store_during(|writing| {
        let other = writing.owner.make_dir(writing.cell.root(), "e").unwrap().fid;
        writing.owner.rename(writing.dir, "f", other, "f").unwrap();
    });
    assert_eq!(ended, refused(Refusal::OtherObject));
}

#[test]
fn the_end_of_the_file_ends_a_store() {
    let ended = Writing::new(456).store_during(|writing| {
        writing.owner.remove(writing.dir, "f").unwrap();
    });
    assert_eq!(ended, Some(Error::Failed(Failure::NoObject)));
}

#[test]
fn a_volume_off_line_ends_a_store() {
    let ended = Writing::new(457).store_during(|writing| {
        let (volume, partition) = (writing.fid.volume, PartitionNumber(0));
        let flags = AttachFlags::OFFLINE;
        writing.owner.ask(vol::TransCreate { volume, partition, flags }).unwrap();
    });
    assert_eq!(ended, refused(Refusal::Revoked));
}

/// A capability for a directory says nothing of the files in it.
#[test]
fn a_store_is_of_a_file_of_the_directory_that_its_mode_lets_users_write() {
    let writing = Writing::new(458);
    let handle = writing.path.handle(writing.fid, WRITE);
    let store = |fid| writing.path.store(&handle, fid, &[(0, 3)], b"abc").map(drop).err();
    let other = writing.owner.make_dir(writing.cell.root(), "e").unwrap().fid;
    let outside = writing.owner.create(other, "g").unwrap().fid;
    assert_eq!(store(outside), refused(Refusal::OtherObject));
    assert_eq!(store(writing.dir), refused(Refusal::OtherObject));
    let link = writing.owner.symlink(writing.dir, "l", "f", 0o777).unwrap().fid;
    assert_eq!(store(link), refused(Refusal::OtherObject), "what it leads to has no bytes of a file");
    let within = writing.owner.create(writing.dir, "h").unwrap().fid;
    assert_eq!(store(within), None);
    writing.owner.ask(fs::StoreStatus { fid: within, status: mode(0o444) }).unwrap();
    assert_eq!(store(within), refused(Refusal::NotAllowed));
    writing.owner.remove(writing.dir, "h").unwrap();
    assert_eq!(store(within), Some(Error::Failed(Failure::NoObject)));
}

/// The owner of a drop box's file, whom its mode does not bind.
#[test]
fn the_right_of_an_owner_holds_whatever_the_mode_is() {
    let writing = Writing::new(459);
    let owen = writing.cell.client(2).acting_as(&Claim::of("owen"));
    writing.owner.ask(fs::StoreAcl { fid: writing.dir, acl: acl("1\n0\nowen\t4\n") }).unwrap();
    let fid = owen.create(writing.dir, "dropped").unwrap().fid;
    owen.ask(fs::StoreStatus { fid, status: mode(0) }).unwrap();
    let path = owen.path();
    let handle = path.handle(fid, BOTH);
    let ticket = path.store(&handle, fid, &[(0, 3)], b"abc").unwrap();
    let version = owen.commit(ticket, fid, fs::ANY_VERSION).unwrap().status.data_version;
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), b"abc");
}

/// The access list lets the owner read, and the owner's right to write holds whatever the mode is: one capability cannot
/// say both.
#[test]
fn rights_of_different_reach_are_of_two_capabilities_where_the_mode_forbids_one() {
    let writing = Writing::new(460);
    let owen = writing.cell.client(2).acting_as(&Claim::of("owen"));
    writing.owner.ask(fs::StoreAcl { fid: writing.dir, acl: acl("1\n0\nowen\t13\n") }).unwrap();
    let fid = owen.create(writing.dir, "dropped").unwrap().fid;
    let both = arguments(&owen.capability(fid, BOTH).unwrap());
    assert_eq!((both.group, both.access), (Group::File(fid), Access::READ | Access::WRITE));
    owen.ask(fs::StoreStatus { fid, status: mode(0o444) }).unwrap();
    let refusal = owen.capability(fid, BOTH).unwrap_err().abort_code();
    assert_eq!(refusal, Some(Errno::EACCES.to_uae()));
    let read = arguments(&owen.capability(fid, READ).unwrap());
    let write = arguments(&owen.capability(fid, WRITE).unwrap());
    assert_eq!((read.group, read.access), (Group::Directory(writing.dir), Access::READ));
    assert_eq!((write.group, write.access), (Group::File(fid), Access::WRITE | Access::ANY_MODE));
}
