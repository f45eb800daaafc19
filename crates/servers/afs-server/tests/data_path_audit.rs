//! The data path in the audit log: who has read what by a capability, and who was refused.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::time::Duration;

use afs_datapath::session::Handle;
use afs_wire::error::Errno;
use afs_wire::fs::{self, AclText};
use afs_wire::ids::{DataVersion, Fid};
use rig::drive::{Path, READ, arguments};
use rig::{Cell, Claim, Client};

/// Carol, a file of hers, and a connection to the drive.
struct Desk {
    cell: Cell,
    carol: Client,
    dir: Fid,
    fid: Fid,
    version: DataVersion,
    path: Path,
}

impl Desk {
    fn new(seed: u64, reads: bool) -> Self {
        let mut cell = Cell::new(seed);
        if reads {
            cell.restart_with_reads_recorded();
        }
        cell.open_data_path();
        let carol = cell.client(1).acting_as(&Claim::of("carol"));
        let dir = carol.make_dir(cell.root(), "d").unwrap().fid;
        let fid = Self::file(&carol, dir, "f");
        let (version, path) = (carol.version(fid), carol.path());
        cell.recorded();
        Desk { cell, carol, dir, fid, version, path }
    }

    fn file(carol: &Client, dir: Fid, name: &str) -> Fid {
        let fid = carol.create(dir, name).unwrap().fid;
        carol.store(fid, 0, &[7; 300_000]).unwrap();
        fid
    }

    fn read(&self, handle: &Handle, fid: Fid, range: (u64, u64)) -> bool {
        self.path.read(handle, fid, range, self.version).is_ok()
    }

    /// What was recorded of the data path, but for its calls.
    fn recorded(&self) -> Vec<String> {
        let lines = self.cell.recorded().into_iter();
        lines.filter(|line| line.contains("DataPathRead") || line.contains("DataPathStore")).collect()
    }
}

fn refused(who: &str, what: &str, fid: Fid) -> String {
    format!("{who} DataPath{what} {fid} -> {}", Errno::EACCES.to_uae().0)
}

#[test]
fn a_read_is_recorded_once_for_each_file_and_capability() {
    let desk = Desk::new(501, true);
    let other = Desk::file(&desk.carol, desk.dir, "other");
    let handle = desk.path.handle(desk.fid, READ);
    assert!((0..20).all(|n| desk.read(&handle, desk.fid, (n * 1000, n * 1000 + 500))));
    assert!((0..20).all(|n| desk.read(&handle, other, (n * 1000, n * 1000 + 500))));
    let record = |fid: Fid| format!("carol DataPathRead {fid} -> 0");
    assert_eq!(desk.recorded(), [record(desk.fid), record(other)]);
    desk.cell.sim.run_for(Duration::from_secs(10));
    let next = desk.path.handle(desk.fid, READ);
    assert!(desk.read(&next, desk.fid, (0, 9)) && desk.read(&handle, desk.fid, (0, 9)));
    assert_eq!(desk.recorded(), [record(desk.fid)], "by another capability");
}

/// By default the log has changes and refusals.
#[test]
fn reads_are_recorded_where_that_is_wanted_and_refusals_everywhere() {
    let desk = Desk::new(502, false);
    let given = desk.carol.capability(desk.fid, READ).unwrap();
    let handle = desk.path.present(&given);
    assert!(desk.read(&handle, desk.fid, (0, 9)));
    assert_eq!(desk.recorded(), [""; 0]);
    assert!(desk.path.store(&handle, desk.fid, &[(0, 1)], b"x").is_err(), "it is for reading");
    assert_eq!(desk.recorded(), [refused("carol", "Store", desk.fid)]);
    let forged = desk.path.present_as(&arguments(&given), [0; 32]);
    assert!(!desk.read(&forged, desk.fid, (0, 9)));
    assert_eq!(desk.recorded(), [refused("-", "Read", desk.fid)], "nobody knows who that is");
    let acl = AclText::new(b"1\n0\ncarol\t126\n\0".as_slice()).unwrap();
    desk.cell.owner().ask(fs::StoreAcl { fid: desk.dir, acl }).unwrap();
    for _ in 0..2 {
        assert!(!desk.read(&handle, desk.fid, (0, 9)));
        assert_eq!(desk.recorded(), [refused("carol", "Read", desk.fid)], "revoked");
    }
}

/// A read in progress that is ended has a record of that, too.
#[test]
fn a_stream_that_is_ended_is_recorded() {
    let desk = Desk::new(503, true);
    let large = desk.carol.create(desk.dir, "large").unwrap().fid;
    desk.carol.store(large, 0, &vec![7; 8 << 20]).unwrap();
    let handle = desk.path.handle(large, READ);
    let arriving = desk.path.open(&handle, large, (0, 8 << 20), desk.carol.version(large)).unwrap();
    let acl = AclText::new(b"1\n0\ncarol\t126\n\0".as_slice()).unwrap();
    desk.cell.owner().ask(fs::StoreAcl { fid: desk.dir, acl }).unwrap();
    assert!(desk.path.rest(arriving).is_err());
    let opened = format!("carol DataPathRead {large} -> 0");
    assert_eq!(desk.recorded(), [opened, refused("carol", "Read", large)]);
}

#[test]
fn each_capability_of_a_call_for_several_has_its_record() {
    let desk = Desk::new(504, true);
    let other = desk.cell.owner().make_dir(desk.cell.root(), "e").unwrap().fid;
    let acl = AclText::new(b"1\n0\nadmin\t127\n\0".as_slice()).unwrap();
    desk.cell.owner().ask(fs::StoreAcl { fid: other, acl }).unwrap();
    desk.cell.recorded();
    let request = |fid| fs::CapabilityRequest { fid, access: READ, drive: fs::OWN_DRIVE };
    let wanted = fs::CapabilityRequests::first_of([request(desk.dir), request(other)]);
    desk.carol.ask(fs::GetCapability { wanted }).unwrap();
    let (dir, eacces) = (desk.dir, Errno::EACCES.to_uae().0);
    let (given, refused) =
        (format!("carol GetCapability {dir} -> 0"), format!("carol GetCapability {other} -> {eacces}"));
    assert_eq!(desk.cell.recorded(), [given.clone(), refused, "carol GetCapability  -> 0".into()]);
    // With a status, what was not given is no refusal of anything that the user wanted.
    let fids = fs::Fids::first_of([desk.fid]);
    for (fid, records) in [(dir, vec![given]), (other, vec![])] {
        desk.carol.ask(fs::StatusAndCapability { fids: fids.clone(), wanted: request(fid) }).unwrap();
        let of_call = format!("carol StatusAndCapability {fid} -> 0");
        assert_eq!(desk.cell.recorded(), [records, vec![of_call]].concat());
    }
}
