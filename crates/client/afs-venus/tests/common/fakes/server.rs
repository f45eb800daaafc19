//! A scripted file server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::future::join_all;
use afs_rpc::{Caller, EnvExt, EnvRef, Rx, Security, ServerCall, Table, WeakRx};
use afs_sim::NodeId;
use afs_wire::cb;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, CallBack, Status, VolSync};
use afs_wire::ids::{Fid, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vol::Snapshot;
use afs_wire::xdr::{BoundedVec, Encode};
use bytes::Bytes;

use super::fetches::Fetches;
use super::{Answer, Image};

/// Contents that several servers may have at once: a volume that moves.
pub type Shared = Arc<Mutex<Image>>;

/// A falsification of a status.
type Falsification = Arc<dyn Fn(Fid, &mut Status) + Send + Sync>;
/// What is replied to a list, of which nothing is done.
type ListAnswer = Arc<dyn Fn(&fs::ChangeList) -> fs::ChangeListReply + Send + Sync>;

/// What is replied to a list under a lease, of which nothing is done.
type LeaseAnswer = Arc<dyn Fn(&fs::ChangeList) -> Result<fs::ChangeListReply, AbortCode> + Send + Sync>;

/// What is lent, and what is replied to lists under the lease.
#[derive(Clone)]
struct Lending {
    fids: Arc<dyn Fn(Fid) -> Vec<Fid> + Send + Sync>,
    answer: LeaseAnswer,
}

/// A server.
#[derive(Clone)]
pub struct FakeServer {
    pub node: NodeId,
    pub address: Ipv4Addr,
    /// What it does with fetches of data.
    pub fetches: Arc<Fetches>,
    inner: Arc<Inner>,
    /// The endpoint, which owns the service.
    rx: Arc<Mutex<Option<Rx>>>,
}

struct Inner {
    fetches: Arc<Fetches>,
    env: EnvRef,
    rx: Mutex<Option<WeakRx>>,
    has: Mutex<BTreeMap<VolumeId, Hosted>>,
    /// Clients that may hold promises.
    callers: Mutex<BTreeSet<SocketAddr>>,
    /// Number of calls, by name.
    calls: Mutex<BTreeMap<&'static str, u64>>,
    /// `None`: the server does not support snapshots.
    snapshots: Mutex<Option<Vec<Snapshot>>>,
    /// Falsifications, by the call in whose reply they are made.
    falsifications: Mutex<BTreeMap<&'static str, Falsification>>,
    /// `None`: the server does not know lists of changes.
    lists: Mutex<Option<ListAnswer>>,
    /// `None`: the server lends no directories.
    lending: Mutex<Option<Lending>>,
    /// Calls that fail with a code.
    failing: Mutex<BTreeMap<&'static str, AbortCode>>,
    /// Objects whose data begins to come and never ends.
    endless: Mutex<BTreeSet<Fid>>,
    /// Holders of locks, all of them exclusive.
    locks: Mutex<BTreeMap<Fid, SocketAddr>>,
    /// True if locks have no known holder: any client releases and extends them.
    locks_have_no_holder: AtomicBool,
    /// Promises given back and not granted again: their breaks are not sent.
    given_up: Mutex<BTreeSet<(SocketAddr, Fid)>>,
    /// Lifetime of promises in seconds.
    promises_for: AtomicU32,
    /// Time that the server takes to process promises given back.
    give_up_pause: Mutex<Duration>,
    /// Volume status; `None`: the server does not know the call.
    space: Mutex<Option<fs::VolumeStatus>>,
}

struct Hosted {
    image: Shared,
    writable: bool,
    refuses: Option<AbortCode>,
}

impl FakeServer {
    pub fn new(node: NodeId, address: Ipv4Addr, env: EnvRef) -> FakeServer {
        let fetches: Arc<Fetches> = Arc::default();
        let inner = Inner {
            fetches: fetches.clone(),
            env,
            rx: Mutex::default(),
            has: Mutex::default(),
            callers: Mutex::default(),
            calls: Mutex::default(),
            snapshots: Mutex::default(),
            falsifications: Mutex::default(),
            lists: Mutex::default(),
            lending: Mutex::default(),
            failing: Mutex::default(),
            endless: Mutex::default(),
            locks: Mutex::default(),
            locks_have_no_holder: AtomicBool::new(false),
            given_up: Mutex::default(),
            promises_for: AtomicU32::new(3600),
            give_up_pause: Mutex::default(),
            space: Mutex::default(),
        };
        FakeServer { node, address, fetches, inner: Arc::new(inner), rx: Arc::default() }
    }

    /// Serves at an endpoint, also after a restart. Promises are lost then.
    pub fn serve(&self, rx: Rx) {
        self.inner.callers.lock().unwrap().clear();
        rx.listen(Arc::new(service(self.inner.clone()))).unwrap();
        *self.inner.rx.lock().unwrap() = Some(rx.downgrade());
        *self.rx.lock().unwrap() = Some(rx);
    }

    pub fn host(&self, volume: VolumeId, image: &Shared, writable: bool) {
        let hosted = Hosted { image: image.clone(), writable, refuses: None };
        self.inner.has.lock().unwrap().insert(volume, hosted);
    }

    /// Makes the volume reply with an abort code, or work again.
    pub fn refuse(&self, volume: VolumeId, code: Option<AbortCode>) {
        self.inner.has.lock().unwrap().get_mut(&volume).unwrap().refuses = code;
    }

    /// Makes a call of this name fail half-way, or work again.
    pub fn fail(&self, call: &'static str, code: Option<AbortCode>) {
        let mut failing = self.inner.failing.lock().unwrap();
        match code {
            Some(code) => failing.insert(call, code),
            None => failing.remove(call),
        };
    }

    pub fn set_snapshots(&self, snapshots: Option<Vec<Snapshot>>) {
        *self.inner.snapshots.lock().unwrap() = snapshots;
    }

    /// Falsifies the statuses in replies to one call.
    pub fn falsify(&self, call: &'static str, falsify: impl Fn(Fid, &mut Status) + Send + Sync + 'static) {
        self.inner.falsifications.lock().unwrap().insert(call, Arc::new(falsify));
    }

    /// Replies to lists of changes without doing anything.
    pub fn answer_lists(
        &self,
        answer: impl Fn(&fs::ChangeList) -> fs::ChangeListReply + Send + Sync + 'static,
    ) {
        *self.inner.lists.lock().unwrap() = Some(Arc::new(answer));
    }

    /// Lends these fids with each directory that is asked for, and whenever more are asked for, and replies to lists without doing anything.
    pub fn lend(
        &self,
        fids: impl Fn(Fid) -> Vec<Fid> + Send + Sync + 'static,
        answer: impl Fn(&fs::ChangeList) -> Result<fs::ChangeListReply, AbortCode> + Send + Sync + 'static,
    ) {
        let lending = Lending { fids: Arc::new(fids), answer: Arc::new(answer) };
        *self.inner.lending.lock().unwrap() = Some(lending);
    }

    /// Recalls a lease at all clients.
    pub async fn recall(&self, dir: Fid, lease: fs::LeaseId) {
        let callers: Vec<SocketAddr> = self.inner.callers.lock().unwrap().iter().copied().collect();
        let rx = self.inner.rx.lock().unwrap().as_ref().and_then(WeakRx::upgrade).unwrap();
        for caller in callers {
            let connection = rx.connection(caller, ServiceId::CALLBACK, Security::null());
            connection.call(&cb::RecallLease { dir, lease }).await.ok();
        }
    }

    /// Sets the lifetime of promises, which the server need not keep.
    pub fn promise_for(&self, seconds: u32) {
        self.inner.promises_for.store(seconds, Ordering::SeqCst);
    }

    /// Delays the processing of promises given back.
    pub fn delay_give_up(&self, pause: Duration) {
        *self.inner.give_up_pause.lock().unwrap() = pause;
    }

    /// Makes locks have no known holder, as at servers of other implementations.
    pub fn forget_lock_holders(&self) {
        self.inner.locks_have_no_holder.store(true, Ordering::SeqCst);
    }

    /// Loses all promises.
    pub fn forget_callers(&self) {
        self.inner.callers.lock().unwrap().clear();
    }

    /// Makes the data of an object begin to come and never end.
    pub fn never_finish(&self, fid: Fid) {
        self.inner.endless.lock().unwrap().insert(fid);
    }

    /// Sets the volume status, or makes the call unknown.
    pub fn set_space(&self, space: Option<fs::VolumeStatus>) {
        *self.inner.space.lock().unwrap() = space;
    }

    pub fn calls(&self, name: &str) -> u64 {
        self.inner.calls.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    /// Breaks all promises on a volume at all clients.
    pub async fn break_volume(&self, volume: VolumeId) {
        self.inner.send_break(Fid::whole_volume(volume), None).await;
    }
}

impl Inner {
    fn count(&self, name: &'static str) {
        *self.calls.lock().unwrap().entry(name).or_default() += 1;
    }

    fn falsified(&self, call: &'static str, fid: Fid, mut status: Status) -> Status {
        let falsify = self.falsifications.lock().unwrap().get(call).cloned();
        if let Some(falsify) = falsify {
            falsify(fid, &mut status);
        }
        status
    }

    async fn send_break(&self, fid: Fid, but: Option<SocketAddr>) {
        let rx = self.rx.lock().unwrap().as_ref().and_then(WeakRx::upgrade).unwrap();
        let others: Vec<SocketAddr> = {
            let given_up = self.given_up.lock().unwrap();
            let is_notified = |peer: &SocketAddr| Some(*peer) != but && !given_up.contains(&(*peer, fid));
            self.callers.lock().unwrap().iter().copied().filter(is_notified).collect()
        };
        let one = |peer| {
            let connection = rx.connection(peer, ServiceId::CALLBACK, Security::null());
            let call = cb::CallBack { fids: BoundedVec::first_of([fid]), callbacks: BoundedVec::new() };
            async move { self.env.timeout(Duration::from_secs(4), connection.call(&call)).await.ok() }
        };
        join_all(others.into_iter().map(one)).await;
    }

    fn image(&self, volume: VolumeId, change: bool) -> Result<(Shared, bool), AbortCode> {
        let has = self.has.lock().unwrap();
        let hosted = has.get(&volume).ok_or(AbortCode::VNOVOL)?;
        match hosted.refuses {
            Some(code) => Err(code),
            None if change && !hosted.writable => Err(AbortCode(30)),
            None => Ok((hosted.image.clone(), hosted.writable)),
        }
    }

    fn promise(&self, peer: SocketAddr, fid: Fid) -> CallBack {
        self.callers.lock().unwrap().insert(peer);
        self.given_up.lock().unwrap().remove(&(peer, fid));
        CallBack::shared(self.promises_for.load(Ordering::SeqCst))
    }

    fn fetch_status(
        &self,
        call: &'static str,
        peer: SocketAddr,
        fid: Fid,
    ) -> Result<fs::FetchStatusReply, AbortCode> {
        let (image, _) = self.image(fid.volume, false)?;
        let image = image.lock().unwrap();
        Ok(fs::FetchStatusReply {
            status: self.falsified(call, fid, image.status(fid)?),
            callback: self.promise(peer, fid),
            sync: VolSync { creation: image.creation },
        })
    }

    /// Changes the holder of a lock; `change` gets the present holder and returns the next.
    fn lock(
        &self,
        fid: Fid,
        change: impl FnOnce(Option<SocketAddr>) -> Result<Option<SocketAddr>, Errno>,
    ) -> Result<fs::LockReply, AbortCode> {
        let (image, _) = self.image(fid.volume, true)?;
        let mut locks = self.locks.lock().unwrap();
        match change(locks.get(&fid).copied()).map_err(Errno::to_uae)? {
            Some(holder) => locks.insert(fid, holder),
            None => locks.remove(&fid),
        };
        Ok(fs::LockReply { sync: VolSync { creation: image.lock().unwrap().creation } })
    }

    /// The bytes asked for, and what follows them.
    fn fetched(
        &self,
        peer: SocketAddr,
        request: &fs::FetchData64,
    ) -> Result<(Vec<u8>, fs::FetchDataReply), AbortCode> {
        let status = self.fetch_status("FetchData", peer, request.fid)?;
        let (image, _) = self.image(request.fid.volume, false)?;
        let data = image.lock().unwrap().data(request.fid, request.position as u64, request.length as u64)?;
        let tail = fs::FetchDataReply { status: status.status, callback: status.callback, sync: status.sync };
        Ok((data, tail))
    }

    /// Data is sent in pieces, so that events can happen in between.
    async fn fetch(&self, call: &mut ServerCall, request: fs::FetchData64) -> Result<(), AbortCode> {
        let peer = call.caller().peer;
        let (mut data, mut tail) = self.fetched(peer, &request)?;
        let answer = match request.fid.is_directory() {
            true => Answer::AsBegun,
            false => self.fetches.held(request.position as u64).await,
        };
        match answer {
            Answer::AsBegun => {}
            Answer::AsItIsNow => (data, tail) = self.fetched(peer, &request)?,
            Answer::Abort(code) => return Err(code),
            Answer::Shorter(bytes) => data.truncate(data.len() - bytes),
            Answer::Longer(bytes) => data.extend(vec![0xee; bytes]),
            Answer::OfVersion(version) => tail.status.data_version = version,
        }
        call.write(Bytes::from((data.len() as u64).to_bytes())).await.ok();
        for piece in data.chunks(64 << 10) {
            if call.write(Bytes::copy_from_slice(piece)).await.is_err() {
                return Ok(());
            }
            let fails = self.failing.lock().unwrap().get("FetchData").copied();
            if let Some(code) = fails {
                return Err(code);
            }
            if self.endless.lock().unwrap().contains(&request.fid) {
                std::future::pending::<()>().await;
            }
        }
        call.write(Bytes::from(tail.to_bytes())).await.ok();
        Ok(())
    }

    async fn store(
        &self,
        call: &mut ServerCall,
        request: fs::StoreData64,
    ) -> Result<fs::StatusReply, AbortCode> {
        let fid = request.fid;
        self.image(fid.volume, true)?;
        let data = call.read_exact(request.length as usize).await.map_err(|_| AbortCode(-32))?;
        // The volume's state after the data has come is the one that counts.
        let (image, _) = self.image(fid.volume, true)?;
        let reply = {
            let mut image = image.lock().unwrap();
            image.store(fid.vnode, request.position, &data, request.file_length)?;
            let status = self.falsified("StoreData", fid, image.status(fid)?);
            fs::StatusReply { status, sync: VolSync { creation: image.creation } }
        };
        self.send_break(fid, Some(call.caller().peer)).await;
        Ok(reply)
    }

    async fn create(&self, caller: &Caller, request: fs::CreateFile) -> Result<fs::CreateReply, AbortCode> {
        let (image, _) = self.image(request.dir.volume, true)?;
        let reply = {
            let mut image = image.lock().unwrap();
            if image.find(request.dir.volume, request.name.as_bytes()).is_some() {
                return Err(AbortCode(17));
            }
            let fid = Fid { volume: request.dir.volume, ..image.create(request.name.as_bytes()) };
            fs::CreateReply {
                fid,
                status: self.falsified("CreateFile", fid, image.status(fid)?),
                dir_status: self.falsified("CreateFile", request.dir, image.status(request.dir)?),
                callback: self.promise(caller.peer, fid),
                sync: VolSync { creation: image.creation },
            }
        };
        self.send_break(request.dir, Some(caller.peer)).await;
        Ok(reply)
    }

    /// Makes a list of new files.
    async fn make_files(
        &self,
        caller: &Caller,
        list: &fs::ChangeList,
    ) -> Result<fs::ChangeListReply, AbortCode> {
        let mut done = Vec::new();
        for listed in list.changes.iter() {
            let fs::Change::CreateFile(small) = &listed.change else { return Err(Errno::EINVAL.to_uae()) };
            let mut made = self.create(caller, small.create.clone()).await?;
            let data = small.data.as_bytes();
            if !data.is_empty() {
                let (image, _) = self.image(made.fid.volume, true)?;
                let mut image = image.lock().unwrap();
                image.store(made.fid.vnode, 0, data, data.len() as u64)?;
                made.status = image.status(made.fid)?;
            }
            done.push(fs::ChangeReply::CreateFile(made));
        }
        Ok(fs::ChangeListReply { done: BoundedVec::first_of(done), code: AbortCode::OK })
    }

    fn bulk(&self, peer: SocketAddr, fids: &fs::Fids) -> Result<fs::BulkStatusReply, AbortCode> {
        let volume = fids.iter().next().map(|fid| fid.volume).unwrap_or_default();
        let (image, _) = self.image(volume, false)?;
        let sync = VolSync { creation: image.lock().unwrap().creation };
        let one = |fid: &Fid| match self.fetch_status("InlineBulkStatus", peer, *fid) {
            Ok(reply) => (reply.status, reply.callback),
            Err(error) => (fs::Status { error, ..Default::default() }, CallBack::NONE),
        };
        let (statuses, callbacks): (Vec<_>, Vec<_>) = fids.iter().map(one).unzip();
        Ok(fs::BulkStatusReply {
            statuses: BoundedVec::first_of(statuses),
            callbacks: BoundedVec::first_of(callbacks),
            sync,
        })
    }
}

fn service(inner: Arc<Inner>) -> Table<Inner> {
    let table = Table::new(ServiceId::FILE, inner)
        .call(|inner: Arc<Inner>, _, _: fs::GetCapabilities| async move {
            inner.count("GetCapabilities");
            Ok::<_, AbortCode>(fs::GetCapabilitiesReply { capabilities: BoundedVec::new() })
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::FetchStatus| async move {
            inner.count("FetchStatus");
            inner.fetch_status("FetchStatus", caller.peer, request.fid)
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::InlineBulkStatus| async move {
            inner.count("InlineBulkStatus");
            inner.bulk(caller.peer, &request.fids)
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::CreateFile| async move {
            inner.count("CreateFile");
            inner.create(&caller, request).await
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::ChangeList| async move {
            inner.count("ChangeList");
            let lending = inner.lending.lock().unwrap().clone();
            if request.under_lease {
                return (lending.ok_or(AbortCode::RXGEN_OPCODE)?.answer)(&request);
            }
            let scripted = inner.lists.lock().unwrap().clone();
            match scripted {
                Some(answer) => Ok(answer(&request)),
                None if lending.is_some() => inner.make_files(&caller, &request).await,
                None => Err(AbortCode::RXGEN_OPCODE),
            }
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::TakeLease| async move {
            inner.count("TakeLease");
            let lending = inner.lending.lock().unwrap().clone().ok_or(AbortCode::RXGEN_OPCODE)?;
            let reply = inner.fetch_status("TakeLease", caller.peer, request.dir)?;
            Ok::<_, AbortCode>(fs::TakeLeaseReply {
                lease: fs::LeaseId(7),
                status: reply.status,
                callback: reply.callback,
                sync: reply.sync,
                fids: BoundedVec::first_of((lending.fids)(request.dir)),
                space: u64::MAX,
            })
        })
        .call(|inner: Arc<Inner>, _, request: fs::LendMore| async move {
            inner.count("LendMore");
            let lending = inner.lending.lock().unwrap().clone().ok_or(AbortCode::RXGEN_OPCODE)?;
            let fids = BoundedVec::first_of((lending.fids)(request.dir));
            Ok::<_, AbortCode>(fs::LendMoreReply { fids, space: u64::MAX })
        })
        .call(|inner: Arc<Inner>, _, request: fs::ListSnapshots| async move {
            inner.count("ListSnapshots");
            inner.image(request.volume, false)?;
            let known = inner.snapshots.lock().unwrap().clone().ok_or(AbortCode::RXGEN_OPCODE)?;
            Ok::<_, AbortCode>(fs::ListSnapshotsReply { snapshots: BoundedVec::first_of(known) })
        })
        .call(|inner: Arc<Inner>, _, request: fs::GetVolumeStatus| async move {
            inner.count("GetVolumeStatus");
            inner.image(request.volume, false)?;
            let status = inner.space.lock().unwrap().ok_or(AbortCode::RXGEN_OPCODE)?;
            let (name, message) = (fs::Name::default(), fs::PathText::default());
            let (offline_message, motd) = (message.clone(), message);
            Ok::<_, AbortCode>(fs::GetVolumeStatusReply { status, name, offline_message, motd })
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::SetLock| async move {
            inner.count("SetLock");
            inner.lock(request.fid, |holder| match holder {
                None => Ok(Some(caller.peer)),
                Some(_) => Err(Errno::EAGAIN),
            })
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::ExtendLock| async move {
            inner.count("ExtendLock");
            let any = inner.locks_have_no_holder.load(Ordering::SeqCst);
            inner.lock(request.fid, |holder| match holder == Some(caller.peer) || any && holder.is_some() {
                true => Ok(holder),
                false => Err(Errno::EINVAL),
            })
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::ReleaseLock| async move {
            inner.count("ReleaseLock");
            let any = inner.locks_have_no_holder.load(Ordering::SeqCst);
            inner.lock(request.fid, |holder| Ok(holder.filter(|holder| !any && *holder != caller.peer)))
        })
        .call(|inner: Arc<Inner>, caller: Caller, request: fs::GiveUpCallBacks| async move {
            let fids = request.fids.iter().map(|fid| (caller.peer, *fid));
            let pause = *inner.give_up_pause.lock().unwrap();
            inner.env.sleep(pause).await;
            inner.given_up.lock().unwrap().extend(fids);
            Ok::<_, AbortCode>(())
        })
        .call(|_, _, _: fs::GiveUpAllCallBacks| async move { Ok::<_, AbortCode>(()) });
    let table = table.streamed(|inner: Arc<Inner>, mut call, request: fs::FetchData64| async move {
        inner.count("FetchData");
        match inner.fetch(&mut call, request).await {
            Ok(()) => drop(call.finish().await),
            Err(code) => call.abort(code),
        }
    });
    table.streamed(|inner: Arc<Inner>, mut call, request: fs::StoreData64| async move {
        inner.count("StoreData");
        match inner.store(&mut call, request).await {
            Ok(reply) => drop(call.reply(&reply).await),
            Err(code) => call.abort(code),
        }
    })
}
