//! Moves in which the adversary speaks Rx properly, as a client that it is not or should not be.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{CallOptions, Caller, Connection, EnvExt, EnvRef, Limits, Rx, Security, Table};
use afs_wire::cb::{self, InterfaceAddr};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Capabilities};
use afs_wire::ids::Uuid;
use afs_wire::rpc::ServiceId;
use parking_lot::Mutex;

use super::{Adversary, MASKS, THIRD, server};

/// What a mask answers to servers.
struct Mask {
    uuid: Mutex<Uuid>,
    breaks: Breaks,
}

/// What it does with breaks.
#[derive(Clone, Copy)]
enum Breaks {
    /// Answers as if they had been carried out.
    Swallows,
    /// Answers shortly before the server loses patience.
    Delays,
    /// Never answers.
    Ignores,
}

impl Mask {
    fn uuid(&self) -> Uuid {
        *self.uuid.lock()
    }
}

impl Adversary {
    /// Takes the name of a client, and is called back in its place if the server believes it.
    pub(super) async fn divert(&mut self) {
        let Some(victim) = self.rng.pick(&self.victims).copied() else { return };
        let mask = Arc::new(Mask { uuid: Mutex::new(Uuid([0; 16])), breaks: Breaks::Swallows });
        let Some(rx) = self.put_on(&mask) else { return };
        let asked = connection(&rx, victim, ServiceId::CALLBACK).call(&cb::TellMeAboutYourself {}).await;
        let Ok(answer) = asked else { return };
        *mask.uuid.lock() = answer.addresses.uuid;
        let files = connection(&rx, server(7000), ServiceId::FILE);
        // Refusals are as good as answers here: the server has asked who we are.
        let _ = files.call(&fs::FetchStatus { fid: self.root }).await;
        if self.rng.chance(300_000) {
            let _ = files.call(&fs::GiveUpAllCallBacks {}).await;
        }
    }

    /// Asks for promises under several names, and does not answer when they are broken, or late.
    pub(super) async fn take_promises(&mut self) {
        if self.masks.len() < 4 || self.rng.chance(100_000) {
            let mut uuid = [0; 16];
            self.rng.fill(&mut uuid);
            let breaks = if self.rng.chance(300_000) { Breaks::Delays } else { Breaks::Ignores };
            self.put_on(&Arc::new(Mask { uuid: Mutex::new(Uuid(uuid)), breaks }));
        }
        let Some(rx) = self.rng.pick(&self.masks).cloned() else { return };
        let files = connection(&rx, server(7000), ServiceId::FILE);
        let fids = self.ledger.files().into_iter().take(4).chain([self.root]);
        let requests: Vec<_> = fids.map(|fid| fs::FetchStatus { fid }).collect();
        // In the time that one call waits for the server to be patient with another mask, the users do much.
        afs_rpc::future::join_all(requests.iter().map(|request| files.call(request))).await;
    }

    /// Questions of cmdebug to a client, which tells strangers nothing of what is in its cache.
    pub(super) async fn ask_client(&mut self) {
        let Some(victim) = self.rng.pick(&self.victims).copied() else { return };
        if self.masks.is_empty() {
            self.put_on(&Arc::new(Mask { uuid: Mutex::new(Uuid([0x66; 16])), breaks: Breaks::Swallows }));
        }
        let Some(rx) = self.masks.first().cloned() else { return };
        let connection = connection(&rx, victim, ServiceId::CALLBACK);
        let index = i32::try_from(self.rng.below(3)).unwrap_or(0);
        if let Ok(told) = connection.call(&cb::GetCe64 { index }).await {
            self.learned(&format!("{victim} tells strangers of its cache: {told:?}"));
        }
        if let Ok(told) = connection.call(&cb::GetCe { index }).await {
            self.learned(&format!("{victim} tells strangers of its cache: {told:?}"));
        }
    }

    /// A new endpoint of Rx at the adversary's address, with a callback service. The latest sixteen are kept.
    fn put_on(&mut self, mask: &Arc<Mask>) -> Option<Rx> {
        let number = u16::try_from(self.rng.below(20_000)).unwrap_or(0);
        let address = SocketAddr::new(IpAddr::V4(THIRD), MASKS + number);
        let rx =
            self.world.rx(self.node, self.env.clone(), address, afs_rx::Config::default(), Limits::default());
        rx.listen(Arc::new(service(mask.clone(), self.env.clone()))).ok()?;
        if self.masks.len() == 16 {
            self.masks.remove(0);
        }
        self.masks.push(rx.clone());
        Some(rx)
    }
}

fn connection(rx: &Rx, to: SocketAddr, service: ServiceId) -> Connection {
    let options = CallOptions { hard: Some(Duration::from_secs(10)), ..CallOptions::default() };
    rx.connection(to, service, Security::null()).with_options(options)
}

fn service(mask: Arc<Mask>, env: EnvRef) -> Table<Mask> {
    let identity = |mask: &Mask| InterfaceAddr { uuid: mask.uuid(), ..InterfaceAddr::default() };
    Table::new(ServiceId::CALLBACK, mask)
        .call::<cb::CallBack, _, _, AbortCode>(move |mask: Arc<Mask>, _: Caller, _| {
            let env = env.clone();
            async move {
                match mask.breaks {
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
        .call::<cb::WhoAreYou, _, _, AbortCode>(move |mask: Arc<Mask>, _: Caller, _| async move {
            Ok(cb::InterfaceAddrReply { addresses: identity(&mask) })
        })
        .call::<cb::TellMeAboutYourself, _, _, AbortCode>(move |mask: Arc<Mask>, _: Caller, _| async move {
            Ok(cb::TellMeAboutYourselfReply {
                addresses: identity(&mask),
                capabilities: Capabilities::first_of([1]),
            })
        })
}

/// A server waits for the answer to a break for four seconds.
const LATE: Duration = Duration::from_millis(3900);
