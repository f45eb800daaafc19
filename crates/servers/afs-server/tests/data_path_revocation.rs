//! The data path: what ends the use of a capability, and a stream in progress, before its time.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_datapath::capability::Refusal;
use afs_datapath::session::{Arriving, Error, Failure, Handle};
use afs_rpc::{Class, Level};
use afs_server::{Policy, Requirement};
use afs_wire::fs::{self, AclText, SetStatus};
use afs_wire::ids::{DataVersion, Fid, PartitionNumber};
use afs_wire::rpc::ServiceId;
use afs_wire::vol::{self, AttachFlags};
use rig::drive::{Path, READ, WRITE};
use rig::people::{ALICE, CAROL, STAFF, TEAM};
use rig::{Cell, Claim, Client, mode};

const LENGTH: u64 = 8 << 20;

/// A large file in a directory that carol may read, and a read of hers that has begun and waits.
struct Reading {
    cell: Cell,
    owner: Client,
    carol: Client,
    dir: Fid,
    fid: Fid,
    path: Path,
    handle: Handle,
    version: DataVersion,
    arriving: Option<Arriving>,
}

fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

impl Reading {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        cell.open_data_path();
        Reading::within(cell)
    }

    fn within(cell: Cell) -> Self {
        let owner = cell.owner();
        let claim = Claim::of("carol").protected(Class::Rxkad, Level::Crypt);
        let carol = cell.client(1).acting_as(&claim);
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        owner.ask(fs::StoreAcl { fid: dir, acl: acl("2\n0\nadmin:staff\t9\nadmin\t127\n") }).unwrap();
        let fid = owner.create(dir, "f").unwrap().fid;
        owner.store(fid, 0, &vec![7; LENGTH as usize]).unwrap();
        let version = owner.version(fid);
        let path = carol.path();
        let handle = path.handle(fid, READ);
        let mut reading = Reading { cell, owner, carol, dir, fid, path, handle, version, arriving: None };
        reading.begin();
        reading
    }

    /// The first bytes have come; most of them wait until they are asked for.
    fn begin(&mut self) {
        let arriving = self.path.open(&self.handle, self.fid, (0, LENGTH), self.version).unwrap();
        let (arriving, piece) = self.path.next(arriving);
        assert!(piece.unwrap().is_some());
        self.cell.sim.run_for(std::time::Duration::from_secs(1));
        self.arriving = Some(arriving);
    }

    /// How the read ends.
    fn end(&mut self) -> Result<usize, Error> {
        self.path.rest(self.arriving.take().unwrap()).map(|rest| rest.len())
    }

    fn again(&self) -> Result<Vec<u8>, Error> {
        self.path.read(&self.handle, self.fid, (0, 9), self.version)
    }

    fn cut(&mut self, failure: Failure) {
        assert_eq!(self.end(), Err(Error::Failed(failure)), "the read in progress");
        assert_eq!(self.again(), Err(Error::Failed(failure)), "the next read");
        assert!(self.path.lives(), "the connection goes on");
    }
}

fn revoked() -> Failure {
    Failure::Refused(Refusal::Revoked)
}

#[test]
fn a_read_that_nobody_disturbs_comes_to_its_end() {
    let mut reading = Reading::new(421);
    assert!(reading.end().unwrap() > LENGTH as usize / 2);
    assert_eq!(reading.again().unwrap(), [7; 9]);
}

#[test]
fn another_access_list_ends_it() {
    let mut reading = Reading::new(422);
    let list = acl("1\n0\nadmin\t127\n");
    reading.owner.ask(fs::StoreAcl { fid: reading.dir, acl: list }).unwrap();
    reading.cut(revoked());
    // The same list again gives the right back, with another capability.
    let list = acl("2\n0\nadmin:staff\t9\nadmin\t127\n");
    reading.owner.ask(fs::StoreAcl { fid: reading.dir, acl: list }).unwrap();
    assert_eq!(reading.again(), Err(Error::Failed(revoked())));
    reading.handle = reading.path.handle(reading.fid, READ);
    assert_eq!(reading.again().unwrap(), [7; 9]);
}

#[test]
fn a_mode_that_forbids_it_ends_it() {
    let mut reading = Reading::new(423);
    reading.owner.ask(fs::StoreStatus { fid: reading.fid, status: mode(0o600) }).unwrap();
    assert!(reading.end().is_ok(), "a mode that permits it does not");
    reading.begin();
    reading.owner.ask(fs::StoreStatus { fid: reading.fid, status: mode(0o200) }).unwrap();
    reading.cut(Failure::Refused(Refusal::NotAllowed));
}

#[test]
fn a_move_to_another_directory_ends_it() {
    let mut reading = Reading::new(424);
    let other = reading.owner.make_dir(reading.cell.root(), "e").unwrap().fid;
    reading.owner.rename(reading.dir, "f", reading.dir, "g").unwrap();
    assert!(reading.end().is_ok(), "another name in the same one does not");
    reading.begin();
    reading.owner.rename(reading.dir, "g", other, "f").unwrap();
    reading.cut(Failure::Refused(Refusal::OtherObject));
}

#[test]
fn the_end_of_the_file_ends_it() {
    let mut reading = Reading::new(425);
    reading.owner.remove(reading.dir, "f").unwrap();
    reading.cut(Failure::NoObject);
}

#[test]
fn a_revoked_token_reads_no_further() {
    let mut reading = Reading::new(427);
    reading.cell.people.revoke(CAROL, 9);
    reading.cut(revoked());
    let claim = Claim::of("carol").protected(Class::Rxkad, Level::Crypt).of_generation(9);
    let carol = reading.cell.client(1).acting_as(&claim);
    (reading.path, reading.carol) = (carol.path(), carol);
    reading.handle = reading.path.handle(reading.fid, READ);
    assert_eq!(reading.again().unwrap(), [7; 9], "with the next one she reads again");
}

#[test]
fn a_user_who_left_the_group_reads_no_further() {
    let mut reading = Reading::new(426);
    reading.cell.people.remove(CAROL, TEAM);
    reading.cut(revoked());
}

/// Membership elsewhere in between: the same groups again are the same right.
#[test]
fn a_change_of_groups_that_ends_before_it_is_noticed_is_none() {
    let mut reading = Reading::new(427);
    reading.cell.people.remove(CAROL, TEAM);
    reading.cell.people.add(CAROL, TEAM);
    reading.cell.people.add(ALICE, STAFF);
    assert!(reading.end().is_ok());
}

#[test]
fn a_requirement_on_connections_ends_it() {
    let cell = Cell::new(428);
    cell.open_data_path_with_tls();
    let mut reading = Reading::within(cell);
    reading.cell.policy.set(Policy::default().of_volume("root.cell", Requirement::RxgkCrypt));
    reading.cut(Failure::Refused(Refusal::NotAllowed));
    reading.cell.policy.set(Policy::default().of_service(ServiceId::FILE, Requirement::RxgkCrypt));
    assert_eq!(reading.again(), Err(Error::Failed(Failure::Refused(Refusal::NotAllowed))));
    reading.cell.policy.set(Policy::default());
    assert_eq!(reading.again().unwrap(), [7; 9]);
}

#[test]
fn a_volume_off_line_ends_it() {
    let mut reading = Reading::new(429);
    let volume = reading.fid.volume;
    let take = |flags| vol::TransCreate { volume, partition: PartitionNumber(0), flags };
    let busy = reading.owner.ask(take(AttachFlags::BUSY)).unwrap().transaction;
    assert!(reading.end().is_ok(), "reads go on while it is busy");
    reading.owner.ask(vol::EndTrans { transaction: busy }).unwrap();
    reading.begin();
    let transaction = reading.owner.ask(take(AttachFlags::OFFLINE)).unwrap().transaction;
    assert_eq!(reading.end(), Err(Error::Failed(Failure::Unavailable)), "the read in progress");
    assert_eq!(reading.carol.no_capability(reading.fid, READ), afs_wire::error::AbortCode::VOFFLINE);
    reading.owner.ask(vol::EndTrans { transaction }).unwrap();
    assert_eq!(reading.again(), Err(Error::Failed(revoked())));
    reading.handle = reading.path.handle(reading.fid, READ);
    assert_eq!(reading.again().unwrap(), [7; 9]);
    // A volume that is switched off, as the next transaction leaves it.
    let transaction = reading.owner.ask(take(AttachFlags::BUSY)).unwrap().transaction;
    let flags = vol::VolumeFlags::OUT_OF_SERVICE;
    reading.begin();
    reading.owner.ask(vol::SetFlags { transaction, flags }).unwrap();
    reading.cut(Failure::Unavailable);
}

#[test]
fn a_volume_that_has_moved_or_is_deleted_ends_it() {
    for seed in [430, 431] {
        let mut reading = Reading::new(seed);
        let (volume, partition) = (reading.fid.volume, PartitionNumber(0));
        if seed == 430 {
            reading.owner.ask(vol::NukeVolume { partition, volume }).unwrap();
        } else {
            let take = vol::TransCreate { volume, partition, flags: AttachFlags::BUSY };
            let transaction = reading.owner.ask(take).unwrap().transaction;
            let site = std::net::Ipv4Addr::new(10, 0, 0, 2);
            reading.owner.ask(vol::SetForwarding { transaction, site }).unwrap();
        }
        assert_eq!(reading.end(), Err(Error::Failed(Failure::Unavailable)), "the read in progress");
        assert_eq!(reading.again(), Err(Error::Failed(revoked())), "the next read");
    }
}

/// A capability for one file rests on the access list of its directory too.
#[test]
fn the_right_to_ones_own_file_ends_with_what_gives_it() {
    let cell = Cell::new(432);
    cell.open_data_path();
    let owner = cell.owner();
    let owen = cell.client(1).acting_as(&Claim::of("owen"));
    let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
    let list = |rights| acl(&format!("2\n0\nowen\t{rights}\nadmin\t127\n"));
    owner.ask(fs::StoreAcl { fid: dir, acl: list(4) }).unwrap();
    let other = owner.make_dir(cell.root(), "e").unwrap().fid;
    let path = owen.path();
    for (name, change) in [("list", 0), ("owner", 1), ("moved", 2), ("removed", 3)] {
        let fid = owen.create(dir, name).unwrap().fid;
        let handle = path.handle(fid, WRITE);
        let written = path.store(&handle, fid, &[(0, 3)], b"abc").unwrap();
        owen.commit(written, fid, fs::ANY_VERSION).unwrap();
        match change {
            0 => drop(owner.ask(fs::StoreAcl { fid: dir, acl: list(0) }).unwrap()),
            1 => {
                let status = SetStatus { owner: Some(ALICE), ..SetStatus::default() };
                owner.ask(fs::StoreStatus { fid, status }).unwrap();
            }
            2 => drop(owner.rename(dir, name, other, name).unwrap()),
            _ => drop(owner.remove(dir, name).unwrap()),
        }
        let again = path.store(&handle, fid, &[(0, 3)], b"def").map(drop);
        assert_eq!(again, Err(Error::Failed(revoked())), "{name}");
        owner.ask(fs::StoreAcl { fid: dir, acl: list(4) }).unwrap();
    }
}

#[test]
fn a_server_that_starts_again_knows_no_capability_of_before() {
    let Reading { mut cell, carol, fid, path, handle, version, arriving, .. } = Reading::new(433);
    let given = carol.capability(fid, READ).unwrap();
    let before = carol.ask(fs::DataPath {}).unwrap();
    drop(arriving);
    cell.restart();
    cell.open_data_path();
    assert!(path.read(&handle, fid, (0, 9), version).is_err());
    let told = carol.ask(fs::DataPath {}).unwrap();
    assert!(told.fingerprint != before.fingerprint && told.drive != before.drive);
    // With the key of before there is no connection at all.
    assert!(
        carol
            .connect(
                &told,
                afs_datapath::session::Security::Tls(afs_datapath::session::Fingerprint(
                    before.fingerprint.0
                ))
            )
            .is_err()
    );
    let path = carol.path();
    let old = path.present(&given);
    let refused = path.read(&old, fid, (0, 9), version);
    assert_eq!(refused, Err(Error::Failed(Failure::Refused(Refusal::OtherDrive))));
    let handle = path.handle(fid, READ);
    assert_eq!(path.read(&handle, fid, (0, 9), version).unwrap(), [7; 9]);
}
