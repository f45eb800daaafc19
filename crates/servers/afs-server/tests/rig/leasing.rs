//! What tests of leases have in common: a directory is lent, lists are made, recalls are answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afs_rpc::CallError;
use afs_wire::error::Errno;
use afs_wire::fs::{
    self, ANY_VERSION, Change, ChangeList, ChangeListReply, ChangeReply, Changes, CreateSmall, LeaseId,
    ListNumber, ListedChange, SeriesId, SetStatus, SmallData, StoreSmall, TakeLease, TakeLeaseReply,
};
use afs_wire::ids::{Fid, FileTime, VolumeId};

use super::{CallResult, Client, mode, name};

pub const ESTALE: Errno = Errno::ESTALE;

/// A few numbers, and some space.
pub fn ask_for(dir: Fid) -> TakeLease {
    TakeLease { dir, files: 8, directories: 2, space: 1 << 20 }
}

/// Makes the changes that a lease requires, and takes it.
pub fn take(client: &Client, dir: Fid) -> TakeLeaseReply {
    earn(client, dir);
    client.ask(ask_for(dir)).unwrap()
}

pub fn earn(client: &Client, dir: Fid) {
    let own = client.address.ip();
    for n in 0..3 {
        client.create(dir, &format!("first {n} of {own}")).unwrap();
    }
    client.fetch_status(dir).unwrap();
    for n in 0..3 {
        client.remove(dir, &format!("first {n} of {own}")).unwrap();
    }
}

pub fn created(dir: Fid, object: Fid, text: &str, data: &[u8]) -> ListedChange {
    let create = fs::CreateFile { dir, name: name(text), status: mode(0o644) };
    let change = Change::CreateFile(CreateSmall { create, data: SmallData::new(data).unwrap() });
    ListedChange { object, time: FileTime::default(), change }
}

pub fn made_dir(dir: Fid, object: Fid, text: &str) -> ListedChange {
    let change = Change::MakeDir(fs::MakeDir { dir, name: name(text), status: mode(0o755) });
    ListedChange { object, time: FileTime::default(), change }
}

pub fn removed(dir: Fid, text: &str) -> ListedChange {
    let change = Change::RemoveFile(fs::RemoveFile { dir, name: name(text) });
    ListedChange { object: Fid::default(), time: FileTime::default(), change }
}

pub fn linked(dir: Fid, existing: Fid, text: &str) -> ListedChange {
    let change = Change::Link(fs::Link { dir, name: name(text), existing });
    ListedChange { object: Fid::default(), time: FileTime::default(), change }
}

pub fn stored(fid: Fid, data: &[u8]) -> ListedChange {
    let (status, data) = (SetStatus::default(), SmallData::new(data).unwrap());
    let store = StoreSmall { fid, status, expected: ANY_VERSION, position: 0, file_length: 0, data };
    ListedChange { object: Fid::default(), time: FileTime::default(), change: Change::Store(store) }
}

pub fn list(dir: Fid, lease: LeaseId, number: u64, changes: &[ListedChange]) -> ChangeList {
    let changes = Changes::first_of(changes.iter().cloned());
    let (volume, series) = (dir.volume, lease.into());
    ChangeList { volume, series, number: ListNumber(number), under_lease: true, changes }
}

/// A list without a lease, the first of a series of its own.
pub fn first_list(volume: VolumeId, changes: impl IntoIterator<Item = Change>) -> ChangeList {
    static SERIES: AtomicU64 = AtomicU64::new(1);
    let (series, number) = (SeriesId(SERIES.fetch_add(1, Ordering::Relaxed)), ListNumber(1));
    let changes = Changes::first_of(changes.into_iter().map(ListedChange::from));
    ChangeList { volume, series, number, under_lease: false, changes }
}

/// The client sends these lists before it answers a recall, and notes their outcomes.
pub fn send_when_recalled(client: &Client, lists: Vec<ChangeList>) -> Arc<Mutex<Vec<CallResult<()>>>> {
    let (outcomes, connection) = (Arc::default(), client.connection::<ChangeList>());
    let noted: Arc<Mutex<Vec<CallResult<()>>>> = Arc::clone(&outcomes);
    client.on_recall(Arc::new(move |_| {
        let (lists, connection, noted) = (lists.clone(), connection.clone(), noted.clone());
        Box::pin(async move {
            for list in lists {
                let outcome = connection.call(&list).await;
                noted.lock().unwrap().push(outcome.map(drop));
            }
            Ok(())
        })
    }));
    outcomes
}

/// The objects that the changes of a list made.
pub fn objects(reply: &ChangeListReply) -> Vec<Option<Fid>> {
    let object = |change: &ChangeReply| match change {
        ChangeReply::CreateFile(made) | ChangeReply::MakeDir(made) => Some(made.fid),
        ChangeReply::Symlink(made) => Some(made.fid),
        _ => None,
    };
    reply.done.iter().map(object).collect()
}

pub fn never_answer(client: &Client) {
    client.on_recall(Arc::new(|_| Box::pin(std::future::pending())));
}

pub fn refused<T: std::fmt::Debug>(outcome: CallResult<T>, errno: Errno) {
    match outcome {
        Err(CallError::Abort(code)) if code == errno.to_uae() => {}
        other => panic!("not {errno:?}: {other:?}"),
    }
}

/// The names in a directory.
pub fn entries(client: &Client, dir: Fid) -> BTreeMap<String, Fid> {
    let blob = afs_wire::dir::Blob::from_bytes(client.read(dir)).unwrap();
    let fid = |vnode, unique| Fid { volume: dir.volume, vnode, unique };
    let entries = blob
        .entries(0)
        .map(|entry| (String::from_utf8_lossy(entry.name).into_owned(), fid(entry.vnode, entry.unique)));
    entries.filter(|(name, _)| name != "." && name != "..").collect()
}
