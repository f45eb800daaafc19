//! Table of the calls of the file service, with the callers that may make each.

use afs_rpc::CallError;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, Fids, LockKind, SetStatus};
use afs_wire::ids::{DataVersion, Fid, Mode};
use afs_wire::xdr::{Encode, Fixed};

use crate::rig::leasing::{self, first_list};
use crate::rig::name;
use crate::who_may::scene::{
    ADMINISTRATORS, EVERYBODY, EVERYBODY_HERE, Scene, list, may_ask, may_lock, ok, passed,
};

pub type Attempt = fn(&mut Scene, char) -> bool;

/// Call, object, callers that may make it, and the attempt. Source: docs/protocol fileserver.md "5.4 Checks
/// per operation".
pub const FILE_CALLS: &[(&str, &str, Attempt)] = &[
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
        let status = SetStatus { owner: Some(crate::rig::people::BOB), ..SetStatus::default() };
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
    ("ChangeList", "aco", |s, who| {
        let (lease, text) = (leased(s), s.fresh());
        let create = fs::CreateFile { dir: s.dir, name: name(&text), status: SetStatus::default() };
        let data = fs::SmallData::new(b"x").unwrap();
        let change = fs::Change::CreateFile(fs::CreateSmall { create, data });
        let listed = fs::ListedChange { object: lease.fids[0], ..change.into() };
        let list = leasing::list(s.dir, lease.lease, 1, &[listed]);
        match may_return(s.caller(who).ask(list)) {
            Some(reply) if reply.code == AbortCode::OK => true,
            Some(reply) => passed::<()>(Err(CallError::Abort(reply.code)), &[Errno::EACCES.to_uae()]),
            None => false,
        }
    }),
    ("LendMore", "ac", |s, who| {
        let lease = leased(s).lease;
        let more = fs::LendMore {
            dir: s.dir,
            lease,
            files: 1,
            directories: 0,
            left: 0,
            space: 0,
            returned: fs::LentFids::new(),
        };
        match s.caller(who).ask(more) {
            Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae() => false,
            other => ok(other),
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
        let status = SetStatus { owner: Some(crate::rig::people::BOB), ..SetStatus::default() };
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
    ("RenameNew", "ac", |s, who| {
        let (_, text) = s.file();
        let (old_name, new_name) = (name(&text), name(&s.fresh()));
        ok(s.caller(who).ask(fs::RenameNew { old_dir: s.dir, old_name, new_dir: s.dir, new_name }))
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
        ok(s.caller(who).capability(fid, fs::CapabilityAccess::READ))
    }),
    ("GetCapability", "aco", |s, who| {
        let (fid, _) = s.file();
        ok(s.caller(who).capability(fid, fs::CapabilityAccess::WRITE))
    }),
    // Who may read learns that the volume does not permit it; a volume that does: `layouts.rs`. Each file is refused by itself.
    ("GetLayout", "aco", |s, who| {
        let request = fs::LayoutRequest { fid: s.file().0, version: DataVersion(0), start: 0, end: 1 };
        let wanted = fs::LayoutRequests::first_of([request]);
        let reply = s.caller(who).ask(fs::GetLayout { wanted }).unwrap();
        may_ask(reply.outcomes[0].clone().into_layout().map_err(CallError::Abort))
    }),
    // Again, of a drive that layouts name.
    ("GetCapability", "aco", |s, who| {
        let wanted = fs::CapabilityRequest { drive: Fixed([1; 16]), ..may_read(s.file().0) };
        let wanted = fs::CapabilityRequests::first_of([wanted]);
        let reply = s.caller(who).ask(fs::GetCapability { wanted }).unwrap();
        may_ask(reply.outcomes[0].clone().into_capability().map_err(CallError::Abort))
    }),
    // The same.
    ("Command", "aco", |s, who| {
        let ((fid, _), version, drive) = (s.file(), DataVersion(0), Fixed([0; 16]));
        let order = fs::Order::Send(fs::PartToSend { version, position: 0, transfer: drive });
        may_ask(s.caller(who).ask(fs::Command { fid, drive, order }))
    }),
    ("Command", "aco", |s, who| {
        let ((fid, _), version) = (s.file(), DataVersion(0));
        let (drive, chunk) = (Fixed([0; 16]), Fixed([0; 24]));
        let order = fs::Order::Address(fs::ChunkToFetch { version, position: 0, chunk });
        may_ask(s.caller(who).ask(fs::Command { fid, drive, order }))
    }),
    ("GetGrowth", "aco", |s, who| {
        let fid = s.file().0;
        may_ask(s.caller(who).ask(fs::GetGrowth { fid }))
    }),
    // As for GetLayout: `rooms.rs`.
    ("GetRoom", "aco", |s, who| {
        let call = fs::GetRoom { fid: s.file().0, bytes: 1, length: 1 };
        may_ask(s.caller(who).ask(call))
    }),
    ("Command", "aco", |s, who| {
        let (fid, id) = (s.file().0, Fixed([7; 16]));
        let order = fs::Order::Take(fs::ChunkToTake { room: id, transfer: id, length: 1, checksum: 0 });
        may_ask(s.caller(who).ask(fs::Command { fid, drive: id, order }))
    }),
    // A caller that may store learns that there is no such room.
    ("Commit", "aco", |s, who| {
        let (fid, status, staged) = (s.file().0, SetStatus::default(), Fixed([7; 16]));
        // One byte.
        let (expected, mut chunk) = (fs::ANY_VERSION, Fixed([0; 24]));
        chunk.0[19] = 1;
        let place = fs::CommitPlace { position: 0, drive: 0, chunk };
        let (file_length, grown_to, drives, places) = (0, 0, 1, 1);
        let call = fs::Commit { fid, status, expected, file_length, grown_to, staged, drives, places };
        match s.caller(who).store_as(call, &[staged.0.to_vec(), place.to_bytes()].concat()) {
            Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae() => true,
            other => ok(other),
        }
    }),
    // Its caller alone can end a room, and nobody here has one: `rooms.rs`.
    ("EndRoom", "", |s, who| match s.caller(who).ask(fs::EndRoom { room: Fixed([7; 16]) }) {
        Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae() => false,
        other => ok(other),
    }),
    ("StatusAndCapability", "aco", |s, who| {
        let (fids, wanted) = (Fids::first_of([s.dir]), may_read(s.file().0));
        let reply = s.caller(who).ask(fs::StatusAndCapability { fids, wanted }).unwrap();
        ok(reply.outcome.into_capability().map_err(CallError::Abort))
    }),
    // Without a ticket of one's own; with one: `data_path.rs`.
    ("Commit", "", |s, who| {
        let ((fid, _), staged, status) = (s.file(), Fixed([7; 16]), SetStatus::default());
        let (expected, file_length, grown_to, drives, places) = (fs::ANY_VERSION, 0, 0, 0, 0);
        let call = fs::Commit { staged, fid, status, expected, file_length, grown_to, drives, places };
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
pub const REFUSED_FILE_CALLS: &[&str] = &[
    "GetVolumeInfo",
    "NGetVolumeInfo",
    "GetRootVolume",
    "CheckToken",
    "Lookup",
    "DFSSymlink",
    "FsCmd",
    "CallBackRxConnAddr",
];

pub fn may_read(fid: Fid) -> fs::CapabilityRequest {
    fs::CapabilityRequest { fid, access: fs::CapabilityAccess::READ, drive: fs::OWN_DRIVE }
}

/// A list of one change.
pub fn by_list(scene: &mut Scene, who: char, change: fs::Change) -> bool {
    ok(scene.caller(who).ask(first_list(scene.dir.volume, [change])))
}

pub fn lease_of(dir: Fid) -> fs::TakeLease {
    fs::TakeLease { dir, files: 1, directories: 0, space: 0 }
}

/// The lease of the directory, for alice's machine.
pub fn leased(scene: &mut Scene) -> fs::TakeLeaseReply {
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
pub fn may_return<T: std::fmt::Debug>(outcome: Result<T, CallError>) -> Option<T> {
    match outcome {
        Err(CallError::Abort(code)) if code == Errno::ESTALE.to_uae() => None,
        other => Some(other.unwrap()),
    }
}

pub fn locked(scene: &mut Scene) -> Fid {
    let (fid, _) = scene.file();
    scene.caller('a').ask(fs::SetLock { fid, kind: LockKind::WRITE }).unwrap();
    fid
}
