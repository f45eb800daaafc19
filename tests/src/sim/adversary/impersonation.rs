//! Moves in which the adversary speaks Rx correctly, as a client that it is not or should not be.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallOptions, Caller, Connection, EnvExt, EnvRef, Limits, Rx, Security, Table};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Capabilities};
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;

use super::{Adversary, FAKE_CLIENTS, server};

/// State of a client that the adversary plays.
struct FakeClient {
    uuid: Mutex<Uuid>,
    breaks: Breaks,
}

/// Its treatment of breaks.
#[derive(Clone, Copy)]
enum Breaks {
    /// Acknowledges them without effect.
    Swallows,
    /// Replies shortly before the server's time-out.
    Delays,
    /// Never replies.
    Ignores,
}

impl FakeClient {
    fn uuid(&self) -> Uuid {
        *self.uuid.lock()
    }
}

impl Adversary {
    /// Takes the UUID of a client, and is called back in its place if the server believes it.
    pub(super) async fn divert(&mut self) {
        let Some(victim) = self.rng.pick(&self.victims).copied() else { return };
        let client = Arc::new(FakeClient { uuid: Mutex::new(Uuid([0; 16])), breaks: Breaks::Swallows });
        let Some(rx) = self.add_fake_client(&client) else { return };
        let asked = connection(&rx, victim, ServiceId::CALLBACK).call(&cb::TellMeAboutYourself {}).await;
        let Ok(answer) = asked else { return };
        *client.uuid.lock() = answer.addresses.uuid;
        let files = connection(&rx, server(7000), ServiceId::FILE);
        // The reply does not matter: the server has asked for the identity.
        let _ = files.call(&fs::FetchStatus { fid: self.root }).await;
        if self.rng.chance(300_000) {
            let _ = files.call(&fs::GiveUpAllCallBacks {}).await;
        }
    }

    /// Requests promises under several UUIDs, and does not reply to their breaks, or replies late.
    pub(super) async fn take_promises(&mut self) {
        if self.fake_clients.len() < 4 || self.rng.chance(100_000) {
            let mut uuid = [0; 16];
            self.rng.fill(&mut uuid);
            let breaks = if self.rng.chance(300_000) { Breaks::Delays } else { Breaks::Ignores };
            self.add_fake_client(&Arc::new(FakeClient { uuid: Mutex::new(Uuid(uuid)), breaks }));
        }
        let Some(rx) = self.rng.pick(&self.fake_clients).cloned() else { return };
        let files = connection(&rx, server(7000), ServiceId::FILE);
        let fids = self.ledger.files().into_iter().take(4).chain([self.root]);
        let requests: Vec<_> = fids.map(|fid| fs::FetchStatus { fid }).collect();
        // The calls are made at the same time, since the server may wait for another fake client meanwhile, while the
        // users do much.
        afs_rpc::future::join_all(requests.iter().map(|request| files.call(request))).await;
    }

    /// Sends cmdebug requests to a client, which must not show its cache to others.
    pub(super) async fn ask_client(&mut self) {
        let Some(victim) = self.rng.pick(&self.victims).copied() else { return };
        let Some(rx) = self.any_fake_client() else { return };
        let connection = connection(&rx, victim, ServiceId::CALLBACK);
        let index = i32::try_from(self.rng.below(3)).unwrap_or(0);
        if let Ok(told) = connection.call(&cb::GetCe64 { index }).await {
            self.learned(&format!("{victim} tells strangers of its cache: {told:?}"));
        }
        if let Ok(told) = connection.call(&cb::GetCe { index }).await {
            self.learned(&format!("{victim} tells strangers of its cache: {told:?}"));
        }
    }

    /// The first fake client; if there is none, one that replies to everything.
    pub(super) fn any_fake_client(&mut self) -> Option<Rx> {
        if self.fake_clients.is_empty() {
            self.add_fake_client(&Arc::new(FakeClient {
                uuid: Mutex::new(Uuid([0x66; 16])),
                breaks: Breaks::Swallows,
            }));
        }
        self.fake_clients.first().cloned()
    }

    /// Adds an endpoint of Rx at the adversary's address, with a callback service. The latest sixteen are kept.
    fn add_fake_client(&mut self, client: &Arc<FakeClient>) -> Option<Rx> {
        let number = u16::try_from(self.rng.below(20_000)).unwrap_or(0);
        let host = self.addresses.next_for_client().clone();
        let address = SocketAddr::new(host.ip, FAKE_CLIENTS + number);
        let rx = self.world.rx(host.node, host.env, address, afs_rx::Config::default(), Limits::default());
        rx.listen(Arc::new(service(client.clone(), self.env.clone()))).ok()?;
        if self.fake_clients.len() == 16 {
            self.fake_clients.remove(0);
        }
        self.fake_clients.push(rx.clone());
        Some(rx)
    }
}

pub(super) fn connection(rx: &Rx, to: SocketAddr, service: ServiceId) -> Connection {
    let options = CallOptions { hard: Some(Duration::from_secs(10)), ..CallOptions::default() };
    rx.connection(to, service, Security::null()).with_options(options)
}

fn service(client: Arc<FakeClient>, env: EnvRef) -> Table<FakeClient> {
    let identity = |client: &FakeClient| InterfaceAddr { uuid: client.uuid(), ..InterfaceAddr::default() };
    Table::new(ServiceId::CALLBACK, client)
        .call::<cb::CallBack, _, _, AbortCode>(move |client: Arc<FakeClient>, _: Caller, _| {
            let env = env.clone();
            async move {
                match client.breaks {
                    Breaks::Swallows => {}
                    Breaks::Delays => env.sleep(LATE).await,
                    Breaks::Ignores => std::future::pending::<()>().await,
                }
                Ok(())
            }
        })
        .call::<cb::InitCallBackState3, _, _, AbortCode>(|_, _: Caller, _| async move { Ok(()) })
        .call::<cb::Probe, _, _, AbortCode>(|_, _: Caller, _| async move { Ok(()) })
        .call::<cb::ProbeUuid, _, _, AbortCode>(|_, _: Caller, _| async move { Ok(()) })
        .call::<cb::WhoAreYou, _, _, AbortCode>(move |client: Arc<FakeClient>, _: Caller, _| async move {
            Ok(cb::InterfaceAddrReply { addresses: identity(&client) })
        })
        .call::<cb::TellMeAboutYourself, _, _, AbortCode>(
            move |client: Arc<FakeClient>, _: Caller, _| async move {
                Ok(cb::TellMeAboutYourselfReply {
                    addresses: identity(&client),
                    capabilities: Capabilities::first_of([1]),
                })
            },
        )
}

/// A server waits four seconds for the reply to a break.
const LATE: Duration = Duration::from_millis(3900);
