//! Test kit: a protection service, the overseer service beside it, and their callers in one simulated world.
#![allow(dead_code, clippy::unwrap_used)] // Each test uses a part of this.

use crate::rig::recorder;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_db::protection::{Fields, Requester};
use afs_db::{EmbeddedProtectionDb, ProtectionDb, bootstrap_protection};
use afs_kv::{Kv, MemoryMedium};
use afs_rpc::{BoxFuture, CallError, Rx, Security};
use afs_rpc::{Parts, UnixTime};
use afs_rx::NullServer;
use afs_server::{
    Audit, AuditOptions, BosServer, Guard, KeyKeeper, Overseen, ProtectionNames, ProtectionOptions,
    ProtectionServer, Role as Played, SharedPolicy, VoteServer,
};
use afs_sim::{NodeId, Sim};
use afs_testkit::net::endpoint;
use afs_testkit::{Claim, ClaimServer, WORD};
use afs_wire::bos::{CellKeys, CellKeysReply};
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, ViceId};
use afs_wire::pt::{self, EntryKind, NameText};
use afs_wire::rpc::{Request, ServiceId};
use afs_wire::xdr::{BoundedVec, Fixed};
use bytes::Bytes;

use recorder::Recorder;

const PATIENCE: Duration = Duration::from_secs(600);
const SERVER_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(SERVER_IP), 7002);
const OWNER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7001);
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)), 7001);

/// A caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An anonymous caller.
    Anonymous,
    /// A user of this cell.
    User(&'static str),
    /// A holder of the cell's key.
    CellKey,
    /// The cell's own process.
    Process,
    /// A user of another cell: name and cell.
    Foreign(&'static str, &'static str),
}

/// A cell with one protection server.
pub struct Cell {
    pub sim: Sim,
    pub db: Arc<dyn ProtectionDb>,
    pub policy: SharedPolicy,
    audit: Audit,
    recorder: Arc<Recorder>,
    server: NodeId,
    client: (NodeId, Rx),
    owner: (NodeId, Rx),
    /// Dropping an endpoint closes its port.
    _endpoint: Rx,
}

/// A host without keys.
#[derive(Debug)]
struct NoKeys;

impl KeyKeeper for NoKeys {
    fn step(self: Arc<Self>, _: CellKeys) -> BoxFuture<'static, Result<CellKeysReply, AbortCode>> {
        Box::pin(async { Ok(CellKeysReply { share: Fixed([7; 32]), keys: BoundedVec::default() }) })
    }
}

impl Cell {
    pub fn new(seed: u64) -> Self {
        let local = vec!["test.cell".into(), "TEST.REALM".into()];
        Cell::with(seed, ProtectionOptions { local, ..ProtectionOptions::default() })
    }

    pub fn with(seed: u64, options: ProtectionOptions) -> Self {
        let sim = Sim::new(seed);
        let server = sim.node("server", IpAddr::V4(SERVER_IP));
        let medium = Arc::new(MemoryMedium::default());
        let kv = Kv::open(medium, afs_db::TABLES, Parts::inline(), afs_kv::Config::default()).unwrap();
        let db: Arc<dyn ProtectionDb> = Arc::new(EmbeddedProtectionDb::new(kv));
        let making = db.clone();
        let made = async move { bootstrap_protection(&*making, "admin").await };
        sim.block_on(server, PATIENCE, made).unwrap().unwrap();
        let rx = endpoint(&sim, server, SERVER);
        rx.trust(OWNER).unwrap();
        let (policy, recorder) = <(SharedPolicy, Arc<Recorder>)>::default();
        let audit = Audit::new(sim.env(server), recorder.clone(), AuditOptions::default());
        let guard = Guard::new(Arc::new(ProtectionNames::new(db.clone(), vec![])));
        let guard = guard.with_policy(policy.clone()).with_audit(audit.clone());
        let overseer = BosServer::service(
            &sim.env(server),
            overseen(),
            db.clone(),
            guard.clone(),
            Some(Arc::new(NoKeys)),
        );
        for service in [ProtectionServer::service(sim.env(server), db.clone(), guard, options), overseer] {
            rx.listen_with(service, vec![Box::new(NullServer), Box::new(ClaimServer(WORD.into()))]).unwrap();
        }
        rx.listen(VoteServer::service(sim.env(server), SERVER)).unwrap();
        let client = sim.node("client", CLIENT.ip());
        let owner = sim.node("owner", OWNER.ip());
        let client = (client, endpoint(&sim, client, CLIENT));
        let owner = (owner, endpoint(&sim, owner, OWNER));
        Cell { db, policy, audit, recorder, server, client, owner, _endpoint: rx, sim }
    }

    /// The code of a call by the holder of a claim.
    pub fn code_as<R: Request>(&self, claim: &Claim, request: R) -> AbortCode {
        let connection = self.client.1.connection(SERVER, R::SERVICE, claim.security());
        let call = async move { connection.call(&request).await };
        match self.sim.block_on(self.client.0, PATIENCE, call).unwrap() {
            Ok(_) => AbortCode::OK,
            Err(error) => error.abort_code().unwrap(),
        }
    }

    /// Makes a call and waits for its result.
    pub fn ask<R: Request>(&self, role: Role, request: R) -> Result<R::Reply, CallError> {
        let (security, (node, rx)) = match role {
            Role::Anonymous => (Security::null(), &self.client),
            Role::Process => (Security::null(), &self.owner),
            Role::User(name) => (Claim::of(name).security(), &self.client),
            Role::Foreign(name, cell) => (Claim::of_cell(name, cell).security(), &self.client),
            Role::CellKey => (Claim::of_key().security(), &self.client),
        };
        let connection = rx.connection(SERVER, R::SERVICE, security);
        let call = async move { connection.call(&request).await };
        self.sim.block_on(*node, PATIENCE, call).unwrap()
    }

    /// The code of a call's outcome: 0 or an error.
    pub fn code<R: Request>(&self, role: Role, request: R) -> AbortCode {
        match self.ask(role, request) {
            Ok(_) => AbortCode::OK,
            Err(CallError::Abort(code)) => code,
            other => panic!("{role:?}: {other:?}"),
        }
    }

    /// Any opcode of any service on the port, anonymously, with raw arguments.
    pub fn raw(&self, service: ServiceId, request: Vec<u8>) -> Result<Vec<u8>, CallError> {
        let connection = self.client.1.connection(SERVER, service, Security::null());
        let work = async move {
            let mut call = connection.begin(Bytes::from(request), true).await?;
            Ok(call.read_to_end(1 << 20).await?.to_vec())
        };
        self.sim.block_on(self.client.0, PATIENCE, work).unwrap()
    }

    /// Records since the last call: `who call object -> code`.
    pub fn recorded(&self) -> Vec<String> {
        let audit = self.audit.clone();
        self.on_server(async move { audit.flush().await });
        self.recorder.take()
    }

    /// Runs something on the server's machine.
    pub fn on_server<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        self.sim.block_on(self.server, PATIENCE, work).unwrap()
    }

    pub fn user(&self, name: &str) -> ViceId {
        self.make(name, EntryKind::USER, 0)
    }

    /// Revokes the tokens of a user, as the login service does.
    pub fn revoke(&self, id: ViceId, now: u64) {
        let fields = Fields { revoke_tokens: Some(UnixTime { secs: now, nanos: 0 }), ..Fields::default() };
        let db = self.db.clone();
        let revoked = async move { db.set_fields(Requester::CELL, id, fields).await };
        self.sim.block_on(self.server_node(), PATIENCE, revoked).unwrap().unwrap();
    }

    pub fn group(&self, name: &str, owner: i32) -> ViceId {
        self.make(name, EntryKind::GROUP, owner)
    }

    fn make(&self, name: &str, kind: EntryKind, owner: i32) -> ViceId {
        let request = pt::NewEntry { name: text(name), kind, owner: ViceId(owner) };
        self.ask(Role::CellKey, request).unwrap().id
    }

    /// The machine of the protection server.
    pub fn server_node(&self) -> NodeId {
        self.server
    }

    pub fn leave(&self, member: ViceId, group: ViceId) {
        self.ask(Role::CellKey, pt::RemoveFromGroup { member, group }).unwrap();
    }

    pub fn join(&self, member: ViceId, group: ViceId) {
        self.ask(Role::CellKey, pt::AddToGroup { member, group }).unwrap();
    }
}

fn overseen() -> Overseen {
    Overseen {
        cell: CellName::new("test.cell").unwrap(),
        hosts: vec![SERVER_IP.to_string()],
        roles: vec![Played::Protection, Played::Locations, Played::Files],
        command: "andrew serve".into(),
    }
}

pub fn text(name: &str) -> NameText {
    NameText::new(name.as_bytes()).unwrap()
}
