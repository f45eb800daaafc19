//! Permissions of every call of the file, location and volume services, for every kind of caller.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

mod rig;

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, AclText, Fids, LockKind, SetStatus};
use afs_wire::ids::{DataVersion, Fid, KindNumber, Mode, PartitionNumber, UnixSeconds, Uuid, VolumeId};
use afs_wire::rpc::{Request, ServiceId, encode_call};
use afs_wire::vol::{self, AttachFlags, TransactionId, VolumeFlags};
use afs_wire::xdr::{BoundedVec, Encode, Fixed};
use afs_wire::{pt, vl};
use rig::people::OWEN;
use rig::{Cell, Claim, Client, FILES, LOCATIONS, VOLUMES, name};

/// All callers, by a letter. The directory's list gives alice everything, staff `rlidwk`, owen `i`; against frank stands a negative
/// entry; `system:anyuser` has nothing.
///
/// | Letter | Who |
/// | --- | --- |
/// | `-` | an anonymous caller |
/// | `a` | alice, by an entry of her own |
/// | `b` | bob, who has no entry |
/// | `c` | carol, in the team, which is in the staff |
/// | `f` | frank, likewise, with the negative entry |
/// | `o` | owen, who owns the file |
/// | `d` | dora, an administrator |
/// | `k` | a holder of the cell's key |
/// | `e` | erin of another cell, who is in the database |
/// | `x` | a user of another cell who is not in the database |
/// | `L` | the cell's own process |
const EVERYBODY: &str = "-abcfodkexL";
/// The same without the owner of the cell, who calls from another machine.
const EVERYBODY_HERE: &str = "-abcfodkex";
const ADMINISTRATORS: &str = "dkL";

struct Scene {
    cell: Cell,
    callers: Vec<(char, Client)>,
    dir: Fid,
    count: u32,
}

impl Scene {
    fn new(seed: u64) -> Self {
        let cell = Cell::with(seed, Default::default(), "rlidwka");
        cell.open_data_path();
        let (client, owner) = (cell.client(1), cell.owner());
        let claim = |letter| match letter {
            'a' => Claim::of("alice"),
            'b' => Claim::of("bob"),
            'c' => Claim::of("carol"),
            'f' => Claim::of("frank"),
            'o' => Claim::of("owen"),
            'd' => Claim::of("dora"),
            'k' => Claim::of_key(),
            'e' => Claim::of_cell("erin", "else.where"),
            'x' => Claim::of_cell("alice", "nowhere"),
            other => panic!("{other}"),
        };
        let callers = EVERYBODY.chars().map(|letter| match letter {
            '-' => (letter, client.clone()),
            'L' => (letter, owner.clone()),
            letter => (letter, client.acting_as(&claim(letter))),
        });
        let callers = callers.collect();
        let dir = owner.make_dir(cell.root(), "d").unwrap().fid;
        owner.ask(fs::StoreAcl { fid: dir, acl: list() }).unwrap();
        Scene { cell, callers, dir, count: 0 }
    }

    fn caller(&self, letter: char) -> &Client {
        &self.callers.iter().find(|caller| caller.0 == letter).unwrap().1
    }

    /// A file owned by owen, created by alice.
    fn file(&mut self) -> (Fid, String) {
        self.count += 1;
        let text = format!("f{}", self.count);
        let fid = self.caller('a').create(self.dir, &text).unwrap().fid;
        let status = SetStatus { owner: Some(OWEN), ..SetStatus::default() };
        self.caller('L').ask(fs::StoreStatus { fid, status }).unwrap();
        (fid, text)
    }

    /// An unused name.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("n{}", self.count)
    }
}

fn list() -> AclText {
    AclText::new("3\n1\nadmin:staff\t63\nalice\t127\nowen\t4\nfrank\t127\n\0").unwrap()
}

/// Whether a call passed the check of its caller.
fn passed<T: std::fmt::Debug>(outcome: Result<T, CallError>, refusals: &[AbortCode]) -> bool {
    match outcome {
        Ok(_) => true,
        Err(CallError::Abort(code)) if refusals.contains(&code) => false,
        Err(CallError::Abort(code)) => panic!("neither done nor refused: {code}"),
        Err(error) => panic!("{error}"),
    }
}

fn ok<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> bool {
    passed(outcome, &[Errno::EACCES.to_uae(), Errno::EPERM.to_uae()])
}

/// The same for calls on a lock that alice's machine holds: EINVAL says that the caller's machine does not
/// hold it, which is no matter of rights.
fn may_lock<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> bool {
    match outcome {
        Err(CallError::Abort(code)) if code == Errno::EINVAL.to_uae() => true,
        other => ok(other),
    }
}

/// The volume's setting is looked at after the right.
fn may_ask<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> bool {
    match outcome {
        Err(CallError::Abort(code)) if code == Errno::EOPNOTSUPP.to_uae() => true,
        other => ok(other),
    }
}

type Attempt = fn(&mut Scene, char) -> bool;

/// Call, object, callers that may make it, and the attempt. Source: docs/protocol fileserver.md "5.4 Checks
/// per operation".
const FILE_CALLS: &[(&str, &str, Attempt)] = &[
    ("FetchData", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).fetch_as(fs::FetchData { fid, position: 0, length: 9 }, 4))
    }),
    ("FetchData", "acdkL", |s, who| {
        ok(s.caller(who).fetch_as(fs::FetchData { fid: s.dir, position: 0, length: 9 }, 4))
    }),
    ("FetchData64", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).fetch(fid, 0, 9))
    }),
    ("FetchACL", "acdkL", |s, who| ok(s.caller(who).ask(fs::FetchAcl { fid: s.dir }))),
    ("FetchACL", "acodkL", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).ask(fs::FetchAcl { fid }))
    }),
    ("FetchStatus", EVERYBODY, |s, who| ok(s.caller(who).fetch_status(s.dir))),
    ("FetchStatus", "acodkL", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).fetch_status(fid))
    }),
    ("BulkStatus", EVERYBODY, |s, who| {
        ok(s.caller(who).ask(fs::BulkStatus { fids: Fids::first_of([s.dir]) }))
    }),
    ("BulkStatus", "acodkL", |s, who| {
        let fids = Fids::first_of([s.dir, s.file().0]);
        ok(s.caller(who).ask(fs::BulkStatus { fids }))
    }),
    ("InlineBulkStatus", "acodkL", |s, who| {
        let fids = Fids::first_of([s.file().0]);
        let reply = s.caller(who).ask(fs::InlineBulkStatus { fids }).unwrap();
        match reply.statuses[0].error {
            AbortCode::OK => true,
            code => passed::<()>(Err(CallError::Abort(code)), &[Errno::EACCES.to_uae()]),
        }
    }),
    ("StoreData", "aco", |s, who| {
        let (fid, _) = s.file();
        let status = SetStatus::default();
        let request = fs::StoreData { fid, status, position: 0, length: 1, file_length: 1 };
        ok(s.caller(who).store_as(request, b"x"))
    }),
    ("StoreData64", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).store(fid, 0, b"x"))
    }),
    ("StoreRanges", "aco", |s, who| {
        let (fid, _) = s.file();
        let expected = s.caller('a').fetch_status(fid).unwrap().status.data_version;
        let status = SetStatus::default();
        let request = fs::StoreRanges { fid, status, expected, file_length: 0, grown_to: 1, ranges: 0 };
        ok(s.caller(who).store_as(request, b""))
    }),
    // Its changes have the rights of the single calls.
    ("ChangeList", "aco", |s, who| {
        let create = fs::CreateFile { dir: s.dir, name: name(&s.fresh()), status: SetStatus::default() };
        let data = fs::SmallData::new(b"x").unwrap();
        by_list(s, who, fs::Change::CreateFile(fs::CreateSmall { create, data }))
    }),
    ("ChangeList", "aco", |s, who| {
        let make = fs::MakeDir { dir: s.dir, name: name(&s.fresh()), status: SetStatus::default() };
        by_list(s, who, fs::Change::MakeDir(make))
    }),
    ("ChangeList", "a", |s, who| {
        let status = SetStatus { mode: Some(Mode(0o644)), ..SetStatus::default() };
        let contents = fs::PathText::new(b"#root.cell.").unwrap();
        let link = fs::Symlink { dir: s.dir, name: name(&s.fresh()), contents, status };
        by_list(s, who, fs::Change::Symlink(link))
    }),
    ("ChangeList", "aco", |s, who| {
        let (existing, _) = s.file();
        let link = fs::Link { dir: s.dir, name: name(&s.fresh()), existing };
        by_list(s, who, fs::Change::Link(link))
    }),
    ("ChangeList", "aco", |s, who| {
        let ((fid, _), status, expected) = (s.file(), SetStatus::default(), fs::ANY_VERSION);
        let data = fs::SmallData::new(b"x").unwrap();
        let store = fs::StoreSmall { fid, status, expected, position: 0, file_length: 1, data };
        by_list(s, who, fs::Change::Store(store))
    }),
    ("ChangeList", "acodkL", |s, who| {
        let (fid, _) = s.file();
        let status = SetStatus { mode: Some(Mode(0o600)), ..SetStatus::default() };
        by_list(s, who, fs::Change::StoreStatus(fs::StoreStatus { fid, status }))
    }),
    ("ChangeList", "dkL", |s, who| {
        let (fid, _) = s.file();
        let status = SetStatus { owner: Some(rig::people::BOB), ..SetStatus::default() };
        by_list(s, who, fs::Change::StoreStatus(fs::StoreStatus { fid, status }))
    }),
    ("ChangeList", "ac", |s, who| {
        let (_, text) = s.file();
        by_list(s, who, fs::Change::RemoveFile(fs::RemoveFile { dir: s.dir, name: name(&text) }))
    }),
    ("ChangeList", "ac", |s, who| {
        let text = s.fresh();
        s.caller('a').make_dir(s.dir, &text).unwrap();
        by_list(s, who, fs::Change::RemoveDir(fs::RemoveDir { dir: s.dir, name: name(&text) }))
    }),
    ("ChangeList", "ac", |s, who| {
        let (_, text) = s.file();
        let (old_name, new_name) = (name(&text), name(&s.fresh()));
        let rename = fs::Rename { old_dir: s.dir, old_name, new_dir: s.dir, new_name };
        by_list(s, who, fs::Change::Rename(rename))
    }),
    // Who has the rights learns that the directory is not lent now.
    ("TakeLease", "ac", |s, who| match s.caller(who).ask(lease_of(s.dir)) {
        Err(CallError::Abort(code)) if code == Errno::EAGAIN.to_uae() => true,
        other => ok(other),
    }),
    // A lease is the machine's, and its changes have the rights of the single calls; L is another machine.
    ("LeaseList", "aco", |s, who| {
        let (lease, text) = (leased(s), s.fresh());
        let create = fs::CreateFile { dir: s.dir, name: name(&text), status: SetStatus::default() };
        let data = fs::SmallData::new(b"x").unwrap();
        let change = fs::Change::CreateFile(fs::CreateSmall { create, data });
        let changes = fs::LeasedChanges::first_of([fs::LeasedChange { object: lease.fids[0], change }]);
        let list = fs::LeaseList { dir: s.dir, lease: lease.lease, number: fs::ListNumber(1), changes };
        match may_return(s.caller(who).ask(list)) {
            Some(reply) if reply.code == AbortCode::OK => true,
            Some(reply) => passed::<()>(Err(CallError::Abort(reply.code)), &[Errno::EACCES.to_uae()]),
            None => false,
        }
    }),
    ("ReturnLease", EVERYBODY_HERE, |s, who| {
        let lease = leased(s).lease;
        may_return(s.caller(who).ask(fs::ReturnLease { dir: s.dir, lease })).is_some()
    }),
    ("OldStoreACL", "adkL", |s, who| ok(s.caller(who).ask(fs::OldStoreAcl { fid: s.dir, acl: list() }))),
    ("StoreACL", "adkL", |s, who| ok(s.caller(who).ask(fs::StoreAcl { fid: s.dir, acl: list() }))),
    ("StoreStatus", "acodkL", |s, who| {
        let (fid, _) = s.file();
        let status = SetStatus { mode: Some(Mode(0o600)), ..SetStatus::default() };
        ok(s.caller(who).ask(fs::StoreStatus { fid, status }))
    }),
    ("StoreStatus", "dkL", |s, who| {
        let (fid, _) = s.file();
        let status = SetStatus { owner: Some(rig::people::BOB), ..SetStatus::default() };
        ok(s.caller(who).ask(fs::StoreStatus { fid, status }))
    }),
    ("RemoveFile", "ac", |s, who| {
        let (_, text) = s.file();
        ok(s.caller(who).remove(s.dir, &text))
    }),
    ("CreateFile", "aco", |s, who| {
        let text = s.fresh();
        ok(s.caller(who).create(s.dir, &text))
    }),
    ("Rename", "ac", |s, who| {
        let (_, text) = s.file();
        let new = s.fresh();
        ok(s.caller(who).rename(s.dir, &text, s.dir, &new))
    }),
    ("Symlink", "aco", |s, who| {
        let text = s.fresh();
        ok(s.caller(who).symlink(s.dir, &text, "target", 0o777))
    }),
    // A mount point.
    ("Symlink", "a", |s, who| {
        let text = s.fresh();
        ok(s.caller(who).symlink(s.dir, &text, "#root.cell.", 0o644))
    }),
    ("Link", "aco", |s, who| {
        let ((fid, _), text) = (s.file(), s.fresh());
        ok(s.caller(who).link(s.dir, &text, fid))
    }),
    ("MakeDir", "aco", |s, who| {
        let text = s.fresh();
        ok(s.caller(who).make_dir(s.dir, &text))
    }),
    ("RemoveDir", "ac", |s, who| {
        let text = s.fresh();
        s.caller('a').make_dir(s.dir, &text).unwrap();
        ok(s.caller(who).remove_dir(s.dir, &text))
    }),
    ("SetLock", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).ask(fs::SetLock { fid, kind: LockKind::WRITE }))
    }),
    ("SetLock", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).ask(fs::SetLock { fid, kind: LockKind::READ }))
    }),
    ("OldSetLock", "aco", |s, who| {
        let (fid, sync) = (s.file().0, fs::VolSync::default());
        ok(s.caller(who).ask(fs::OldSetLock { fid, kind: LockKind::WRITE, sync }))
    }),
    ("ExtendLock", EVERYBODY, |s, who| {
        let fid = locked(s);
        may_lock(s.caller(who).ask(fs::ExtendLock { fid }))
    }),
    ("OldExtendLock", EVERYBODY, |s, who| {
        let (fid, sync) = (locked(s), fs::VolSync::default());
        may_lock(s.caller(who).ask(fs::OldExtendLock { fid, sync }))
    }),
    ("ReleaseLock", EVERYBODY, |s, who| {
        let fid = locked(s);
        ok(s.caller(who).ask(fs::ReleaseLock { fid }))
    }),
    ("OldReleaseLock", EVERYBODY, |s, who| {
        let (fid, sync) = (locked(s), fs::VolSync::default());
        ok(s.caller(who).ask(fs::OldReleaseLock { fid, sync }))
    }),
    ("ChangeLock", "aco", |s, who| {
        let fid = locked(s);
        may_lock(s.caller(who).ask(fs::ChangeLock { fid, kind: LockKind::WRITE }))
    }),
    ("DataPath", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::DataPath {}))),
    ("GetCapability", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).ask(fs::GetCapability { fid, access: fs::CapabilityAccess::READ }))
    }),
    ("GetCapability", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).ask(fs::GetCapability { fid, access: fs::CapabilityAccess::WRITE }))
    }),
    // Who may read learns that the volume does not permit it; a volume that does: `layouts.rs`.
    ("GetLayout", "aco", |s, who| {
        let ((fid, _), version) = (s.file(), DataVersion(0));
        let call = fs::GetLayout { fid, version, start: 0, end: 1 };
        may_ask(s.caller(who).ask(call))
    }),
    // Each renewal is refused by itself: `layouts.rs`.
    ("RenewLayouts", "aco", |s, who| {
        let renewal = fs::LayoutRenewal { fid: s.file().0, drive: Fixed([0; 16]) };
        let wanted = fs::LayoutRenewals::first_of([renewal]);
        let reply = s.caller(who).ask(fs::RenewLayouts { wanted }).unwrap();
        may_ask(reply.outcomes[0].outcome.clone().into_reply().map_err(CallError::Abort))
    }),
    // The same.
    ("Deliver", "aco", |s, who| {
        let ((fid, _), version, id) = (s.file(), DataVersion(0), Fixed([0; 16]));
        may_ask(s.caller(who).ask(fs::Deliver { fid, version, position: 0, drive: id, transfer: id }))
    }),
    ("GetAddress", "aco", |s, who| {
        let ((fid, _), version) = (s.file(), DataVersion(0));
        let (drive, chunk) = (Fixed([0; 16]), Fixed([0; 24]));
        may_ask(s.caller(who).ask(fs::GetAddress { fid, version, position: 0, drive, chunk }))
    }),
    // As for GetLayout: `rooms.rs`.
    ("GetRoom", "aco", |s, who| {
        let call = fs::GetRoom { fid: s.file().0, bytes: 1, length: 1 };
        may_ask(s.caller(who).ask(call))
    }),
    // Who may store is told that there is no such room.
    ("CommitChunks", "aco", |s, who| {
        let (fid, status, none) = (s.file().0, SetStatus::default(), Fixed([7; 16]));
        // One byte.
        let (expected, mut chunk) = (fs::ANY_VERSION, Fixed([0; 24]));
        chunk.0[19] = 1;
        let part = fs::CommitPart { position: 0, chunk, receipt: none };
        let call = fs::CommitChunks {
            fid,
            status,
            expected,
            file_length: 0,
            grown_to: 0,
            drive: none,
            room: none,
            run: 1,
            parts: 1,
        };
        match s.caller(who).store_as(call, &part.to_bytes()) {
            Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae() => true,
            other => ok(other),
        }
    }),
    ("BulkCapability", "aco", |s, who| {
        let wanted = fs::CapabilityRequests::first_of([may_read(s.file().0)]);
        let reply = s.caller(who).ask(fs::BulkCapability { wanted }).unwrap();
        ok(reply.outcomes[0].clone().into_reply().map_err(CallError::Abort))
    }),
    ("StatusAndCapability", "aco", |s, who| {
        let (fids, wanted) = (Fids::first_of([s.dir]), may_read(s.file().0));
        let reply = s.caller(who).ask(fs::StatusAndCapability { fids, wanted }).unwrap();
        ok(reply.outcome.into_reply().map_err(CallError::Abort))
    }),
    // Without a ticket of one's own; with one: `data_path.rs`.
    ("CommitStore", "", |s, who| {
        let ((fid, _), ticket, status) = (s.file(), Fixed([7; 16]), SetStatus::default());
        let (expected, file_length) = (fs::ANY_VERSION, 0);
        let call = fs::CommitStore { ticket, fid, status, expected, file_length, grown_to: 0 };
        passed(s.caller(who).ask(call), &[Errno::ESTALE.to_uae()])
    }),
    ("GiveUpCallBacks", EVERYBODY, |s, who| {
        let (fids, callbacks) = (Fids::first_of([s.dir]), fs::Promises::new());
        ok(s.caller(who).ask(fs::GiveUpCallBacks { fids, callbacks }))
    }),
    ("GiveUpAllCallBacks", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::GiveUpAllCallBacks {}))),
    ("GetVolumeStatus", EVERYBODY, |s, who| {
        ok(s.caller(who).ask(fs::GetVolumeStatus { volume: s.dir.volume }))
    }),
    ("SetVolumeStatus", ADMINISTRATORS, |s, who| {
        let (name, offline_message, motd) = Default::default();
        let status = Default::default();
        let call = fs::StoreVolumeStatus { volume: s.dir.volume, status, name, offline_message, motd };
        ok(s.caller(who).ask(call))
    }),
    // The object is the root directory of the volume.
    ("ListSnapshots", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::ListSnapshots { volume: s.dir.volume }))),
    ("FlushCPS", ADMINISTRATORS, |s, who| {
        let (ids, addresses) = Default::default();
        ok(s.caller(who).ask(fs::FlushCps { ids, addresses, spare: 0 }))
    }),
    ("GetTime", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::GetTime {}))),
    ("GetCapabilities", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::GetCapabilities {}))),
    ("GetStatistics", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::GetStatistics {}))),
    ("GetStatistics64", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::GetStatistics64 { version: 16 }))),
    ("XStatsVersion", EVERYBODY, |s, who| ok(s.caller(who).ask(fs::XStatsVersion {}))),
    ("GetXStats", EVERYBODY, |s, who| {
        ok(s.caller(who).ask(fs::GetXStats { client_version: 2, collection: 0 }))
    }),
];

/// Refused to every caller alike.
const REFUSED_FILE_CALLS: &[&str] = &[
    "GetVolumeInfo",
    "NGetVolumeInfo",
    "GetRootVolume",
    "CheckToken",
    "Lookup",
    "DFSSymlink",
    "FsCmd",
    "CallBackRxConnAddr",
];

fn may_read(fid: Fid) -> fs::CapabilityRequest {
    fs::CapabilityRequest { fid, access: fs::CapabilityAccess::READ }
}

/// A list of one change.
fn by_list(scene: &mut Scene, who: char, change: fs::Change) -> bool {
    let changes = fs::Changes::first_of([change]);
    ok(scene.caller(who).ask(fs::ChangeList { volume: scene.dir.volume, changes }))
}

fn lease_of(dir: Fid) -> fs::TakeLease {
    fs::TakeLease { dir, files: 1, directories: 0, space: 0 }
}

/// The lease of the directory, for alice's machine.
fn leased(scene: &mut Scene) -> fs::TakeLeaseReply {
    (0..3).for_each(|_| drop(scene.file()));
    let names = [(); 3].map(|()| scene.fresh());
    let (alice, dir) = (scene.caller('a'), scene.dir);
    for text in &names {
        alice.create(dir, text).unwrap();
    }
    alice.fetch_status(dir).unwrap();
    alice.ask(lease_of(dir)).unwrap()
}

/// `None` for a machine that does not hold the lease.
fn may_return<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> Option<T> {
    match outcome {
        Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae() => None,
        other => Some(other.unwrap()),
    }
}

fn locked(scene: &mut Scene) -> Fid {
    let (fid, _) = scene.file();
    scene.caller('a').ask(fs::SetLock { fid, kind: LockKind::WRITE }).unwrap();
    fid
}

#[test]
fn every_call_of_the_file_service_by_everybody() {
    let mut scene = Scene::new(81);
    for (call, allowed, attempt) in FILE_CALLS {
        let may: String = EVERYBODY.chars().filter(|who| attempt(&mut scene, *who)).collect();
        assert_eq!(may, *allowed, "{call}");
    }
    for call in REFUSED_FILE_CALLS {
        let opcode = fs::OPCODES.iter().find(|row| row.1 == *call).unwrap().0;
        let codes: BTreeSet<_> =
            scene.callers.iter().map(|(_, client)| raw(client, FILES, 1, opcode)).collect();
        assert_eq!(codes.len(), 1, "{call}");
    }
    let named = FILE_CALLS.iter().map(|row| row.0).chain(REFUSED_FILE_CALLS.iter().copied());
    complete(fs::OPCODES, named);
}

fn raw(client: &Client, to: SocketAddr, service: u16, opcode: u32) -> AbortCode {
    match client.raw(to, ServiceId(service), opcode.to_bytes()) {
        Err(CallError::Abort(code)) => code,
        other => panic!("{other:?}"),
    }
}

/// Checks that every call of a service has its row.
fn complete<'a>(opcodes: &[(u32, &str)], named: impl Iterator<Item = &'a str>) {
    let named: BTreeSet<&str> = named.collect();
    let all: BTreeSet<&str> = opcodes.iter().map(|row| row.1).collect();
    assert_eq!(named.symmetric_difference(&all).collect::<Vec<_>>(), [&""; 0], "calls without a row");
}

/// A call with the group of callers that may make it.
struct Row {
    call: &'static str,
    allowed: &'static str,
    request: Vec<u8>,
}

fn row<R: Request>(allowed: &'static str, request: R) -> Row {
    Row { call: R::NAME, allowed, request: encode_call(&request) }
}

/// Checks which callers pass. The further result does not matter: most of these calls are invalid.
fn check_rows(scene: &Scene, to: SocketAddr, service: ServiceId, refusal: AbortCode, rows: &[Row]) {
    for row in rows {
        let passes = |client: &Client| match client.raw(to, service, row.request.clone()) {
            Ok(_) => true,
            Err(CallError::Abort(code)) => {
                assert_ne!(code, AbortCode::RXGEN_SS_UNMARSHAL, "{}", row.call);
                assert_ne!(code, AbortCode::RXGEN_OPCODE, "{}", row.call);
                code != refusal
            }
            Err(error) => panic!("{}: {error}", row.call),
        };
        let passing = scene.callers.iter().filter(|(_, client)| passes(client));
        assert_eq!(passing.map(|caller| caller.0).collect::<String>(), row.allowed, "{}", row.call);
    }
}

fn location_rows() -> Vec<Row> {
    let text = || vl::NameText::new(b"nothing".as_slice()).unwrap();
    let (volume, kind, release) = (VolumeId(77), KindNumber::ANY, vl::ReleaseType::ALL);
    let entry = vl::Entry::default;
    let attributes = vl::Attributes::default;
    let page = |pattern: &[u8]| vl::ListAttributesN2 {
        attributes: attributes(),
        name: vl::NameText::new(pattern).unwrap(),
        start: 0,
    };
    let query = vl::ServerKey::Index(1).into();
    let uuid = Uuid([3; 16]);
    vec![
        row(ADMINISTRATORS, vl::CreateEntry { entry: entry().into() }),
        row(ADMINISTRATORS, vl::CreateEntryN { entry: entry() }),
        row(ADMINISTRATORS, vl::DeleteEntry { volume, kind }),
        row(ADMINISTRATORS, vl::ReplaceEntry { volume, kind, entry: entry().into(), release }),
        row(ADMINISTRATORS, vl::ReplaceEntryN { volume, kind, entry: entry(), release }),
        row(ADMINISTRATORS, vl::UpdateEntry { volume, kind, update: Default::default(), release }),
        row(ADMINISTRATORS, vl::UpdateEntryByName { name: text(), update: Default::default(), release }),
        row(ADMINISTRATORS, vl::SetLock { volume, kind, operation: vl::LockOperation::MOVE }),
        row(ADMINISTRATORS, vl::ReleaseLock { volume, kind, release }),
        row(ADMINISTRATORS, vl::GetNewVolumeId { count: 1 }),
        row(ADMINISTRATORS, vl::ChangeAddr { old: Ipv4Addr::LOCALHOST, new: Ipv4Addr::LOCALHOST }),
        row(ADMINISTRATORS, vl::RegisterAddrs { uuid, spare: 0, addresses: BoundedVec::new() }),
        row(ADMINISTRATORS, page(b"root.*")),
        row(EVERYBODY, page(b".*")),
        row(EVERYBODY, vl::GetEntryById { volume, kind }),
        row(EVERYBODY, vl::GetEntryByIdN { volume, kind }),
        row(EVERYBODY, vl::GetEntryByNameO { name: text() }),
        row(EVERYBODY, vl::GetEntryByNameN { name: text() }),
        row(EVERYBODY, vl::GetEntryByNameU { name: text() }),
        row(EVERYBODY, vl::ListEntry { previous: 0 }),
        row(EVERYBODY, vl::ListEntryN { previous: 0 }),
        row(EVERYBODY, vl::ListAttributes { attributes: attributes() }),
        row(EVERYBODY, vl::ListAttributesN { attributes: attributes() }),
        row(EVERYBODY, vl::LinkedList { attributes: attributes() }),
        row(EVERYBODY, vl::LinkedListN { attributes: attributes() }),
        row(EVERYBODY, vl::GetAddrs { handle: 0, spare: 0 }),
        row(EVERYBODY, vl::GetAddrsU { query }),
        row(EVERYBODY, vl::GetStats {}),
        row(EVERYBODY, vl::ProbeServer {}),
    ]
}

/// Opcodes without a call.
const UNKNOWN_LOCATION_CALLS: &[&str] = &[
    "CreateEntryU",
    "GetEntryByIDU",
    "ReplaceEntryU",
    "ListEntryU",
    "ListAttributesU",
    "LinkedListU",
    "YFSVL.GetEndpoints",
    "YFSVL.GetCellName",
    "GetCapabilities",
];

#[test]
fn every_call_of_the_location_service_by_everybody() {
    let (scene, rows) = (Scene::new(82), location_rows());
    check_rows(&scene, LOCATIONS, ServiceId::LOCATION, AbortCode::VL_PERM, &rows);
    unknown(&scene, LOCATIONS, ServiceId::LOCATION, vl::OPCODES, UNKNOWN_LOCATION_CALLS);
    complete(vl::OPCODES, rows.iter().map(|row| row.call).chain(UNKNOWN_LOCATION_CALLS.iter().copied()));
}

fn unknown(scene: &Scene, to: SocketAddr, service: ServiceId, opcodes: &[(u32, &str)], calls: &[&str]) {
    for (opcode, call) in opcodes.iter().filter(|row| calls.contains(&row.1)) {
        for (_, client) in &scene.callers {
            assert_eq!(raw(client, to, service.0, *opcode), AbortCode::RXGEN_OPCODE, "{call}");
        }
    }
}

fn volume_rows() -> Vec<Row> {
    let text = || vol::NameText::new(b"nothing".as_slice()).unwrap();
    let slots = || vol::PartitionText::new(b"/vicepa".as_slice()).unwrap();
    let (transaction, partition) = (TransactionId(9999), PartitionNumber(0));
    let (volume, none, kind, date) = (VolumeId(77), VolumeId(0), KindNumber(0), UnixSeconds(1));
    let info = vol::VolumeInfo::unchanged();
    // The last caller creates the volume for good; it is refused to the others before its name counts.
    let create = vol::CreateVolume { partition, name: text(), kind: KindNumber(9), parent: none, volume };
    let ids = vol::SetIdsTypes { transaction, name: text(), kind, parent: none, clone: none, backup: none };
    let cookie = vol::RestoreCookie::default();
    let destination = vol::Destination { host: Ipv4Addr::LOCALHOST, port: 7005, security: 1 };
    let destination_transaction = transaction;
    let forward = vol::Forward { transaction, from_date: date, destination, destination_transaction, cookie };
    let (replicas, spare) = (BoundedVec::new(), 0);
    let forward_multiple = vol::ForwardMultiple { transaction, from_date: date, replicas, spare, cookie };
    vec![
        row(ADMINISTRATORS, create),
        row(ADMINISTRATORS, vol::DeleteVolume { transaction }),
        row(ADMINISTRATORS, vol::NukeVolume { partition, volume }),
        row(ADMINISTRATORS, vol::TransCreate { volume, partition, flags: AttachFlags::BUSY }),
        row(ADMINISTRATORS, vol::EndTrans { transaction }),
        row(ADMINISTRATORS, vol::SetFlags { transaction, flags: VolumeFlags(0) }),
        row(ADMINISTRATORS, vol::SetInfo { transaction, info }),
        row(ADMINISTRATORS, vol::SetDate { transaction, date }),
        row(ADMINISTRATORS, ids),
        row(ADMINISTRATORS, vol::SetForwarding { transaction, site: Ipv4Addr::LOCALHOST }),
        row(EVERYBODY, vol::GetFlags { transaction }),
        row(EVERYBODY, vol::GetName { transaction }),
        row(EVERYBODY, vol::GetStatus { transaction }),
        row(EVERYBODY, vol::SignalRestore { name: text(), kind, parent: none, clone: none }),
        row(EVERYBODY, vol::Monitor {}),
        row(EVERYBODY, vol::ListVolumes { partition, flags: 1 }),
        row(EVERYBODY, vol::XListVolumes { partition, flags: 1 }),
        row(EVERYBODY, vol::ListOneVolume { partition, volume }),
        row(EVERYBODY, vol::XListOneVolume { partition, volume }),
        row(EVERYBODY, vol::ListPartitions {}),
        row(EVERYBODY, vol::XListPartitions {}),
        row(EVERYBODY, vol::PartitionInfo { name: slots() }),
        row(EVERYBODY, vol::PartitionInfo64 { name: slots() }),
        row(EVERYBODY, vol::GetNthVolume { index: 0 }),
        row(EVERYBODY, vol::ListSnapshots { volume }),
        row(EVERYBODY, vol::DumpFormats {}),
        row(EVERYBODY, vol::GetRoute { volume }),
        row(ADMINISTRATORS, vol::SetRoute { transaction, route: vol::DataRoute::Calls }),
        row(EVERYBODY, vol::GetPlacement { volume }),
        row(ADMINISTRATORS, vol::SetPlacement { transaction, placement: vol::Placement::default() }),
        row(
            ADMINISTRATORS,
            vol::FetchPart {
                fid: Fid::root(volume),
                data_version: afs_wire::ids::DataVersion(0),
                position: 0,
                length: 1,
            },
        ),
        row(
            ADMINISTRATORS,
            vol::ForwardDifference {
                transaction,
                base: volume,
                destination,
                destination_transaction,
                cookie,
            },
        ),
        row(ADMINISTRATORS, vol::Clone { transaction, purge: none, kind, name: text(), volume }),
        row(ADMINISTRATORS, vol::ReClone { transaction, clone: volume }),
        row(ADMINISTRATORS, vol::ConvertRoToRw { partition, volume }),
        row(ADMINISTRATORS, vol::Restore { transaction, flags: 0, cookie }),
        row(ADMINISTRATORS, vol::Dump { transaction, from_date: date }),
        row(ADMINISTRATORS, vol::DumpV2 { transaction, from_date: date, flags: 0 }),
        row(ADMINISTRATORS, vol::DumpByPath { transaction, from_date: date, flags: 0 }),
        row(ADMINISTRATORS, vol::RestoreByPath { transaction, flags: 0, cookie }),
        row(ADMINISTRATORS, vol::GetSize { transaction, from_date: date }),
        row(ADMINISTRATORS, forward),
        row(ADMINISTRATORS, forward_multiple),
    ]
}

/// Opcodes without a call.
const UNKNOWN_VOLUME_CALLS: &[&str] = &[
    "OsdSupport",
    "Traverse",
    "WipeCand",
    "OldSalvage",
    "OldArchCand",
    "Salvage",
    "ListObjects",
    "SplitVolume",
    "ArchCand",
];

#[test]
fn every_call_of_the_volume_service_by_everybody() {
    let (scene, rows) = (Scene::new(83), volume_rows());
    check_rows(&scene, VOLUMES, ServiceId::VOLUME, AbortCode::VOLSERBAD_ACCESS, &rows);
    unknown(&scene, VOLUMES, ServiceId::VOLUME, vol::OPCODES, UNKNOWN_VOLUME_CALLS);
    complete(vol::OPCODES, rows.iter().map(|row| row.call).chain(UNKNOWN_VOLUME_CALLS.iter().copied()));
}

/// The calls of the protection service have their table in that service's tests; here it is only checked that
/// none is added unnoticed.
#[test]
fn the_calls_of_the_protection_service_are_those_that_were_thought_of() {
    assert_eq!(pt::OPCODES.len(), PROTECTION_CALLS, "add the call to the protection service's own table");
}

const PROTECTION_CALLS: usize = 23;

#[test]
fn proof_that_is_not_believed_reaches_no_handler() {
    let scene = Scene::new(84);
    scene.cell.recorded();
    let calls = || scene.caller('L').ask(fs::GetStatistics {}).unwrap().statistics.total_calls;
    let before = calls();
    let liar = scene.caller('-').acting_as(&Claim::of_key().with_word("guess"));
    let refused = CallError::Abort(AbortCode(rig::BAD_PROOF));
    assert_eq!(liar.fetch_status(scene.dir).unwrap_err(), refused);
    assert_eq!(liar.ask(vl::GetNewVolumeId { count: 1 }).unwrap_err(), refused);
    assert_eq!(liar.ask(vol::Monitor {}).unwrap_err(), refused);
    assert_eq!(
        liar.ask(fs::CreateFile { dir: scene.dir, name: name("x"), status: rig::mode(0o644) }).unwrap_err(),
        refused
    );
    assert_eq!(calls(), before, "no call was counted");
    assert_eq!(scene.cell.recorded(), [""; 0]);
}
