//! The data path: capabilities for all files of a directory, many of them in one call, and what each is refused for.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_datapath::capability::{Access, ByteRange, Capability, DriveId, Group, HolderId, KeyEpoch, Refusal};
use afs_datapath::session::{Error, Failure};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText, CapabilityAccess, CapabilityRequest, CapabilityRequests, Fids};
use afs_wire::ids::{DataVersion, Fid, Uniquifier};
use rig::drive::{BOTH, Path, READ, WRITE, arguments};
use rig::{Cell, Claim, Client, mode};

const ALL_OF_ALICE: &str = "2\n0\nalice\t127\nadmin\t127\n";
const CAROL_READS: &str = "3\n0\nalice\t127\ncarol\t9\nadmin\t127\n";

fn acl(text: &str) -> AclText {
    AclText::new(format!("{text}\0").into_bytes()).unwrap()
}

/// Two directories of Alice's that Carol may read, with a file in each.
struct Desk {
    cell: Cell,
    owner: Client,
    alice: Client,
    carol: Client,
    here: Fid,
    there: Fid,
}

impl Desk {
    fn new(seed: u64) -> Self {
        let cell = Cell::new(seed);
        cell.open_data_path();
        let owner = cell.owner();
        let dir = |name: &str| {
            let fid = owner.make_dir(cell.root(), name).unwrap().fid;
            owner.ask(fs::StoreAcl { fid, acl: acl(CAROL_READS) }).unwrap();
            fid
        };
        let (here, there) = (dir("here"), dir("there"));
        let alice = cell.client(1).acting_as(&Claim::of("alice"));
        let carol = cell.client(2).acting_as(&Claim::of("carol"));
        Desk { cell, owner, alice, carol, here, there }
    }

    fn file(&self, dir: Fid, name: &str) -> Fid {
        let fid = self.alice.create(dir, name).unwrap().fid;
        self.alice.store(fid, 0, name.as_bytes()).unwrap();
        fid
    }

    fn read(&self, path: &Path, handle: &afs_datapath::session::Handle, fid: Fid) -> Outcome {
        match path.read(handle, fid, (0, 9), self.alice.version(fid)) {
            Ok(bytes) => Ok(String::from_utf8(bytes).unwrap()),
            Err(Error::Failed(failure)) => Err(failure),
            other => panic!("{other:?}"),
        }
    }
}

type Outcome = Result<String, Failure>;

fn refused(why: Refusal) -> Outcome {
    Err(Failure::Refused(why))
}

fn wanted(wanted: &[(Fid, CapabilityAccess)]) -> fs::GetCapability {
    let requests = wanted.iter().map(|(fid, access)| CapabilityRequest {
        fid: *fid,
        access: *access,
        drive: fs::OWN_DRIVE,
    });
    fs::GetCapability { wanted: CapabilityRequests::first_of(requests) }
}

/// What was given, or the code with which it was refused.
fn outcomes(client: &Client, asked: &[(Fid, CapabilityAccess)]) -> Vec<Result<(Group, Access), AbortCode>> {
    let reply = client.ask(wanted(asked)).unwrap();
    let given = reply.outcomes.into_iter().map(|outcome| outcome.into_capability());
    given.map(|given| given.map(|given| (arguments(&given).group, arguments(&given).access))).collect()
}

/// The capability of a directory.
fn of_directory(client: &Client, dir: Fid, access: CapabilityAccess) -> fs::DriveCapability {
    let reply = client.ask(wanted(&[(dir, access)])).unwrap();
    reply.outcomes.into_iter().next().unwrap().into_capability().unwrap()
}

#[test]
fn one_call_gives_several_capabilities_and_each_is_decided_alone() {
    let desk = Desk::new(601);
    let (file, secret) = (desk.file(desk.here, "f"), desk.file(desk.there, "secret"));
    desk.owner.ask(fs::StoreAcl { fid: desk.there, acl: acl(ALL_OF_ALICE) }).unwrap();
    let link = desk.alice.symlink(desk.here, "link", "f", 0o777).unwrap().fid;
    let eacces = Errno::EACCES.to_uae();
    let (here, there) = (Group::Directory(desk.here), Group::Directory(desk.there));
    let asked = [
        (desk.here, READ),
        (desk.there, READ),
        (file, READ),
        (secret, READ),
        (desk.here, WRITE),
        (desk.here, BOTH),
        (link, READ),
        (Fid { unique: Uniquifier(9999), ..desk.here }, READ),
        (desk.here, CapabilityAccess(0)),
        (desk.here, CapabilityAccess(9)),
    ];
    let read = Ok((here, Access::READ));
    let (none, invalid) = (Err(AbortCode::VNOVNODE), Err(Errno::EINVAL.to_uae()));
    let no = Err(eacces);
    assert_eq!(
        outcomes(&desk.carol, &asked),
        [read, no, read, no, no, no, Err(Errno::EISDIR.to_uae()), none, invalid, invalid]
    );
    let both = Ok((there, Access::READ | Access::WRITE));
    assert_eq!(
        outcomes(&desk.alice, &[(desk.there, BOTH), (desk.there, READ)]),
        [both, Ok((there, Access::READ))]
    );
    let nothing = desk.carol.ask(wanted(&[])).unwrap_err();
    assert_eq!(nothing.abort_code(), Some(Errno::EINVAL.to_uae()));
}

#[test]
fn the_capability_of_a_directory_reads_all_of_its_files_whose_mode_permits() {
    let desk = Desk::new(602);
    let given = of_directory(&desk.carol, desk.here, READ);
    let path = desk.carol.path();
    let handle = path.present(&given);
    // Those too that are made after it was given.
    let files: Vec<Fid> = (0..50).map(|n| desk.file(desk.here, &format!("f{n}"))).collect();
    for (n, fid) in files.iter().enumerate() {
        assert_eq!(desk.read(&path, &handle, *fid), Ok(format!("f{n}")));
    }
    desk.owner.ask(fs::StoreStatus { fid: files[7], status: mode(0o200) }).unwrap();
    assert_eq!(desk.read(&path, &handle, files[7]), refused(Refusal::NotAllowed));
    assert_eq!(desk.read(&path, &handle, files[8]), Ok("f8".into()));
    let written = path.store(&handle, files[8], &[(0, 1)], b"x").map(drop);
    assert_eq!(written, Err(Error::Failed(Failure::Refused(Refusal::NotAllowed))), "it is for reading");
}

#[test]
fn ten_thousand_files_of_a_directory_are_read_by_one_capability() {
    let desk = Desk::new(610);
    let files: Vec<(Fid, DataVersion)> = (0..10_000)
        .map(|n| {
            let fid = desk.alice.create(desk.here, &format!("f{n}")).unwrap().fid;
            let stored = desk.alice.store(fid, 0, format!("f{n}").as_bytes()).unwrap();
            (fid, stored.status.data_version)
        })
        .collect();
    let given = of_directory(&desk.carol, desk.here, READ);
    // Again on another connection, as after the first was idle for too long.
    for _ in 0..2 {
        let path = desk.carol.path();
        let handle = path.present(&given);
        for (n, (fid, version)) in files.iter().enumerate() {
            assert_eq!(path.read(&handle, *fid, (0, 9), *version).unwrap(), format!("f{n}").as_bytes());
        }
    }
}

#[test]
fn the_status_of_files_brings_the_capability_of_their_directory() {
    let desk = Desk::new(603);
    let files: Vec<Fid> = (0..9).map(|n| desk.file(desk.here, &format!("f{n}"))).collect();
    let ask = |client: &Client, dir| {
        let fids = Fids::first_of(files.iter().copied());
        client
            .ask(fs::StatusAndCapability {
                fids,
                wanted: CapabilityRequest { fid: dir, access: READ, drive: fs::OWN_DRIVE },
            })
            .unwrap()
    };
    let plain = desk.carol.ask(fs::InlineBulkStatus { fids: Fids::first_of(files.iter().copied()) }).unwrap();
    let reply = ask(&desk.carol, desk.here);
    assert_eq!((&reply.statuses, reply.callbacks.len()), (&plain.statuses, 9));
    assert!(reply.callbacks.iter().all(|callback| *callback != fs::CallBack::NONE));
    let path = desk.carol.path();
    let handle = path.present(&reply.outcome.into_capability().unwrap());
    for (n, fid) in files.iter().enumerate() {
        assert_eq!(desk.read(&path, &handle, *fid), Ok(format!("f{n}")));
    }
    // The promises are as those of InlineBulkStatus.
    desk.carol.heard();
    desk.alice.store(files[3], 0, b"new").unwrap();
    assert!(!desk.carol.heard().is_empty());
    // Without the right there are statuses, of a kind, and no capability.
    desk.owner.ask(fs::StoreAcl { fid: desk.here, acl: acl(ALL_OF_ALICE) }).unwrap();
    let reply = ask(&desk.carol, desk.here);
    assert_eq!(reply.outcome.into_capability(), Err(Errno::EACCES.to_uae()));
    assert!(reply.statuses.len() == 9 && reply.statuses.iter().all(|status| status.error != AbortCode::OK));
}

#[test]
fn a_server_without_a_data_path_gives_status_alone() {
    let cell = Cell::new(604);
    let client = cell.client(1);
    let fid = client.create(cell.root(), "f").unwrap().fid;
    let request = CapabilityRequest { fid: cell.root(), access: READ, drive: fs::OWN_DRIVE };
    let reply = client.ask(fs::StatusAndCapability { fids: Fids::first_of([fid]), wanted: request }).unwrap();
    assert_eq!((reply.statuses.len(), reply.statuses[0].error), (1, AbortCode::OK));
    assert_eq!(reply.outcome.into_capability(), Err(AbortCode::RXGEN_OPCODE));
    assert_eq!(client.no_capability(cell.root(), READ), AbortCode::RXGEN_OPCODE);
}

/// Whatever is done to the files of a directory, its capability is good for the files that are in it.
#[test]
fn a_file_that_is_not_in_the_directory_is_refused() {
    let desk = Desk::new(605);
    let (file, other) = (desk.file(desk.here, "f"), desk.file(desk.there, "other"));
    let path = desk.carol.path();
    let handle = path.present(&of_directory(&desk.carol, desk.here, READ));
    assert_eq!(desk.read(&path, &handle, file), Ok("f".into()));
    assert_eq!(desk.read(&path, &handle, other), refused(Refusal::OtherObject));
    desk.owner.rename(desk.here, "f", desk.there, "f").unwrap();
    assert_eq!(desk.read(&path, &handle, file), refused(Refusal::OtherObject), "moved out");
    desk.owner.rename(desk.there, "f", desk.here, "g").unwrap();
    assert_eq!(desk.read(&path, &handle, file), Ok("f".into()), "moved in");
    let inner = desk.owner.make_dir(desk.here, "inner").unwrap().fid;
    let below = desk.file(inner, "below");
    assert_eq!(desk.read(&path, &handle, below), refused(Refusal::OtherObject), "of a directory below");
    let dir = path.read(&handle, desk.here, (0, 9), DataVersion(1)).map(drop);
    assert_eq!(dir, Err(Error::Failed(Failure::Refused(Refusal::OtherObject))), "the directory itself");
    let elsewhere = Fid { volume: afs_wire::ids::VolumeId(file.volume.0 + 1), ..file };
    let read = path.read(&handle, elsewhere, (0, 9), DataVersion(1)).map(drop);
    assert_eq!(read, Err(Error::Failed(Failure::Refused(Refusal::OtherObject))), "another volume");
}

/// The uniquifier tells the objects apart that have had one number.
#[test]
fn what_was_removed_is_not_read_under_its_number() {
    let desk = Desk::new(606);
    let file = desk.file(desk.here, "f");
    let (path, version) = (desk.carol.path(), desk.alice.version(file));
    let handle = path.present(&of_directory(&desk.carol, desk.here, READ));
    desk.alice.remove(desk.here, "f").unwrap();
    let gone = Err(Error::Failed(Failure::NoObject));
    assert_eq!(path.read(&handle, file, (0, 9), version), gone);
    let files: Vec<Fid> = (0..20).map(|n| desk.file(desk.here, &format!("f{n}"))).collect();
    assert_eq!(path.read(&handle, file, (0, 9), version), gone, "with as many new files as numbers");
    for (n, fid) in files.iter().enumerate() {
        let before = Fid { unique: Uniquifier(fid.unique.0 - 1), ..*fid };
        assert_eq!(path.read(&handle, before, (0, 9), version), gone, "{n}");
        let of_the_old = Fid { vnode: fid.vnode, ..file };
        let read = path.read(&handle, of_the_old, (0, 9), version);
        assert!(read == gone || of_the_old == *fid, "{n}");
    }
    // A directory that is removed, and others that are made afterwards.
    let dir = desk.owner.make_dir(desk.cell.root(), "dir").unwrap().fid;
    desk.owner.ask(fs::StoreAcl { fid: dir, acl: acl(CAROL_READS) }).unwrap();
    let handle = path.present(&of_directory(&desk.carol, dir, READ));
    desk.owner.remove_dir(desk.cell.root(), "dir").unwrap();
    for n in 0..20 {
        let next = desk.owner.make_dir(desk.cell.root(), &format!("dir{n}")).unwrap().fid;
        desk.owner.ask(fs::StoreAcl { fid: next, acl: acl(CAROL_READS) }).unwrap();
        let file = desk.file(next, "f");
        assert_eq!(desk.read(&path, &handle, file), refused(Refusal::OtherObject), "{next}");
    }
}

#[test]
fn a_right_that_is_taken_away_in_one_directory_stays_in_the_other() {
    let desk = Desk::new(607);
    let (file, other) = (desk.file(desk.here, "f"), desk.file(desk.there, "other"));
    let path = desk.carol.path();
    let here = path.present(&of_directory(&desk.carol, desk.here, READ));
    let there = path.present(&of_directory(&desk.carol, desk.there, READ));
    assert_eq!(desk.read(&path, &here, file), Ok("f".into()));
    desk.owner.ask(fs::StoreAcl { fid: desk.here, acl: acl(ALL_OF_ALICE) }).unwrap();
    // The reply to StoreAcl has come: from here on nothing is read.
    assert_eq!(desk.read(&path, &here, file), refused(Refusal::Revoked));
    assert_eq!(desk.read(&path, &there, other), Ok("other".into()));
    desk.owner.ask(fs::StoreAcl { fid: desk.here, acl: acl(CAROL_READS) }).unwrap();
    assert_eq!(desk.read(&path, &here, file), refused(Refusal::Revoked), "an old one stays revoked");
    let again = path.present(&of_directory(&desk.carol, desk.here, READ));
    assert_eq!(desk.read(&path, &again, file), Ok("f".into()));
}

/// Arguments that nobody sealed, with the secret of those that were.
#[test]
fn a_capability_that_is_changed_is_forged() {
    let desk = Desk::new(608);
    let file = desk.file(desk.here, "f");
    let given = of_directory(&desk.carol, desk.here, READ);
    let sealed = arguments(&given);
    let path = desk.carol.path();
    let volume = desk.here.volume;
    let changed = [
        ("drive", Refusal::OtherDrive, Capability { drive: DriveId(sealed.drive.0 ^ 1), ..sealed }),
        ("epoch", Refusal::OtherEpoch, Capability { epoch: KeyEpoch(sealed.epoch.0 - 1), ..sealed }),
        ("volume", Refusal::Forged, Capability { group: Group::Volume(volume), ..sealed }),
        ("directory", Refusal::Forged, Capability { group: Group::Directory(desk.there), ..sealed }),
        ("file", Refusal::Forged, Capability { group: Group::File(file), ..sealed }),
        ("access", Refusal::Forged, Capability { access: Access::READ | Access::WRITE, ..sealed }),
        ("mode", Refusal::Forged, Capability { access: Access::READ | Access::ANY_MODE, ..sealed }),
        ("range", Refusal::Forged, Capability { range: ByteRange::new(0, 5).unwrap(), ..sealed }),
        ("expiry", Refusal::Forged, Capability { expires: sealed.expires + 1, ..sealed }),
        ("holder", Refusal::Forged, Capability { holder: HolderId(sealed.holder.0 ^ 1), ..sealed }),
    ];
    for (what, why, capability) in changed {
        let handle = path.present_as(&capability, given.secret.0);
        assert_eq!(desk.read(&path, &handle, file), refused(why), "{what}");
    }
    let handle = path.present(&given);
    assert_eq!(desk.read(&path, &handle, file), Ok("f".into()), "and the connection goes on");
}
