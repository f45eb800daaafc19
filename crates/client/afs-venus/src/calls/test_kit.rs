//! Test kit: a client machine with this part alone, and scripted servers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afs_rpc::{Rx, Table};
use afs_sim::{NodeId, Sim};
use afs_testkit::net::{endpoint, serve};
use afs_testkit::scripted::{Locations, Script, site};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::ids::{CellName, Fid, Uniquifier, VnodeId, VolumeId, VolumeKind};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{EntryFlags, SiteFlags};
use afs_wire::xdr::BoundedVec;
use parking_lot::Mutex;

use crate::calls::{CallContext, CallOutcome, CallReply, Calls, Parts};
use crate::config::{CellConfig, Limits};
use crate::counters::Counters;
use crate::error::Result;
use crate::identity::Identity;
use crate::kernel::KernelCaches;
use crate::key::CellIndex;
use crate::location::{Address, Cell, Group, Location, Server, Volume};
use crate::promises::{self, Promises};
use crate::residency::{PinBounds, Pins};
use crate::sink::NoSink;
use crate::vnode::VnodeTable;

pub(crate) const CELL: CellIndex = CellIndex(0);
pub(crate) const VOLUME: VolumeId = VolumeId(7);
/// Time limit of a call of a test.
const LIMIT: Duration = Duration::from_secs(600);

/// A scripted file server.
pub(crate) struct Fake {
    pub node: NodeId,
    pub address: Ipv4Addr,
    script: Arc<Script>,
}

impl Fake {
    /// Number of calls for the status of an object so far.
    pub fn calls(&self) -> usize {
        self.script.calls()
    }

    pub fn script(
        &self,
        script: impl FnMut(usize) -> std::result::Result<Duration, AbortCode> + Send + 'static,
    ) {
        self.script.says(script);
    }
}

/// The simulated world of a test.
pub(crate) struct TestKit {
    pub sim: Sim,
    pub node: NodeId,
    pub calls: Arc<Calls>,
    pub promises: Arc<Promises>,
    pub identity: Arc<Identity>,
    pub location: Arc<Location>,
    pub counters: Arc<Counters>,
    /// Number of returns of servers reported so far.
    pub returns: Arc<AtomicUsize>,
    rx: Rx,
    entries: Locations,
}

pub(crate) fn test_kit(seed: u64) -> TestKit {
    test_kit_with(seed, Limits::default())
}

pub(crate) fn test_kit_with(seed: u64, limits: Limits) -> TestKit {
    let sim = Sim::new(seed);
    let node = sim.node("client", [10, 0, 0, 1].into());
    let env = sim.env(node);
    let rx = endpoint(&sim, node, ([10, 0, 0, 1], 7001).into());
    let (entries, at) = (Locations::default(), SocketAddr::from(([10, 0, 2, 1], 7003)));
    serve(&sim, sim.node("location", at.ip()), at, entries.service());
    let name = CellName::new("home.cell").unwrap();
    let cell = CellConfig { name, location_servers: vec![at], file_port: 7000, is_listed: true };
    let location = Arc::new(Location::new(vec![Cell::new(&cell, &env, &rx, limits.server_dead)]));
    let identity = Arc::new(Identity::new(env.clone(), None, None));
    let counters = Arc::<Counters>::default();
    let parts = promises::Parts {
        identity: identity.clone(),
        counters: counters.clone(),
        kernel: Arc::new(KernelCaches::new(
            env.clone(),
            Arc::new(NoSink),
            counters.clone(),
            limits.settle_max,
        )),
        vnodes: Arc::new(VnodeTable::new(100)),
        env: env.clone(),
        location: location.clone(),
        pins: Arc::new(Pins::new(PinBounds { objects: 0, bytes: 0, directory_bytes: 0 })),
    };
    let promises = Arc::new(Promises::new(parts, &limits));
    let returns = Arc::new(AtomicUsize::new(0));
    let parts = Parts {
        env,
        rx: rx.clone(),
        identity: identity.clone(),
        location: location.clone(),
        counters: counters.clone(),
        promises: promises.clone(),
    };
    let counted = returns.clone();
    let calls = Calls::new(parts, &limits, move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    TestKit { sim, node, calls, promises, identity, location, counters, returns, rx, entries }
}

fn file_service(script: Arc<Script>) -> Table<Script> {
    Table::new(ServiceId::FILE, script)
        .call(|_, _, _: fs::GetCapabilities| async move {
            Ok::<_, AbortCode>(fs::GetCapabilitiesReply { capabilities: BoundedVec::new() })
        })
        .call(|script: Arc<Script>, _, _: fs::FetchStatus| async move {
            script.call().await?;
            Ok::<_, AbortCode>(fs::FetchStatusReply {
                status: fs::Status { kind: fs::FileKind::File, ..fs::Status::default() },
                callback: fs::CallBack::shared(1000),
                sync: fs::VolSync::default(),
            })
        })
}

/// Enters the volume, of every kind, at these addresses.
pub(crate) fn enter(entries: &Locations, addresses: impl Iterator<Item = Ipv4Addr>) {
    let site = |server| site(server, SiteFlags::RW_VOLUME | SiteFlags::RO_VOLUME);
    let flags = EntryFlags::RW_EXISTS | EntryFlags::RO_EXISTS;
    entries.enter("v", [VOLUME; 3], flags, addresses.map(site).collect());
}

/// An object of the volume.
pub(crate) fn fid() -> Fid {
    Fid::new(VOLUME, VnodeId(2), Uniquifier(1))
}

impl TestKit {
    /// A file server that replies at once.
    pub fn fake(&self, n: u8) -> Fake {
        let address = Ipv4Addr::new(10, 0, 1, n);
        let node = self.sim.node(&format!("server{n}"), address.into());
        let fake = Fake { node, address, script: Arc::new(Script::new(self.sim.env(node))) };
        self.start(&fake);
        fake
    }

    /// Offers the file service, at first and after a restart.
    pub fn start(&self, fake: &Fake) {
        let at = SocketAddr::new(IpAddr::V4(fake.address), 7000);
        serve(&self.sim, fake.node, at, Arc::new(file_service(fake.script.clone())));
    }

    /// A server as the client knows it, by its addresses.
    pub fn server(&self, addresses: &[Ipv4Addr]) -> Arc<Server> {
        let peers: Vec<SocketAddr> =
            addresses.iter().map(|address| SocketAddr::new((*address).into(), 7000)).collect();
        let make = |peer| Address::new(&self.rx, peer, Limits::default().server_dead);
        self.location.servers().learn(CELL, None, 0, &peers, 0, make).unwrap()
    }

    /// A volume on all of these servers; the location service lists them.
    pub fn volume(&self, kind: VolumeKind, fakes: &[&Fake]) -> Arc<Volume> {
        let sites = fakes.iter().map(|fake| self.server(&[fake.address])).collect();
        self.locate(fakes);
        self.volume_at(kind, sites)
    }

    pub fn volume_at(&self, kind: VolumeKind, sites: Vec<Arc<Server>>) -> Arc<Volume> {
        let flags = EntryFlags::RW_EXISTS | EntryFlags::RO_EXISTS;
        let group = Group { name: "v".into(), ids: [VOLUME; 3], flags, sites: Vec::new() };
        self.location.volumes().learn(CELL, VOLUME, kind, Arc::new(group), sites, self.promises.now())
    }

    /// Sets the entry of the location service.
    pub fn locate(&self, fakes: &[&Fake]) {
        enter(&self.entries, fakes.iter().map(|fake| fake.address));
    }

    /// Requests the status of an object in a background task.
    pub fn ask(&self, context: CallContext, volume: &Arc<Volume>) -> PendingCall {
        let (calls, volume, pending) = (self.calls.clone(), volume.clone(), PendingCall::default());
        let result = pending.clone();
        self.sim.env(self.node).spawn(Box::pin(async move {
            let outcome = calls.call(&context, &volume, fs::FetchStatus { fid: fid() }).await;
            *result.0.lock() = Some(outcome);
        }));
        pending
    }

    /// The same, until the reply. Returns the duration too.
    pub fn call(
        &self,
        context: CallContext,
        volume: &Arc<Volume>,
    ) -> (Result<CallReply<fs::FetchStatusReply>>, Duration) {
        let (began, pending) = (self.sim.now(), self.ask(context, volume));
        self.sim.run_until(LIMIT, || pending.is_done()).unwrap();
        (pending.take().result, self.sim.now().saturating_since(began))
    }
}

/// A call in progress.
#[derive(Clone, Default)]
pub(crate) struct PendingCall(Arc<Mutex<Option<CallOutcome<fs::FetchStatusReply>>>>);

impl PendingCall {
    pub fn is_done(&self) -> bool {
        self.0.lock().is_some()
    }

    pub fn take(&self) -> CallOutcome<fs::FetchStatusReply> {
        self.0.lock().take().unwrap()
    }
}
