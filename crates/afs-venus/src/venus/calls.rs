//! Calls to the sites of a volume, down the retry ladder.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::{CallError, Connection, EnvExt, Instant};
use afs_wire::error::AbortCode;
use afs_wire::fs;
use afs_wire::rpc::Request;

use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::TokenId;
use crate::location::{Address, Server, Volume};
use crate::retry::{Ladder, Outcome, Patience, Step, marks_down};
use crate::venus::Venus;
use crate::venus::manner::Manner;

/// Where one attempt goes.
#[derive(Clone)]
pub(crate) struct Target {
    pub server: Arc<Server>,
    pub address: Arc<Address>,
    /// To that address, for whoever it is made for.
    pub connection: Connection,
    /// What proves who that is.
    pub token: TokenId,
}

impl Target {
    /// A call that nobody in particular makes.
    pub fn anonymous(server: &Arc<Server>, address: Arc<Address>) -> Target {
        let connection = address.anonymous();
        Target { server: server.clone(), address, connection, token: TokenId::NONE }
    }
}

/// What came of it, and what is needed to judge the promise in it.
pub(crate) struct Answered<T> {
    pub value: T,
    pub server: Arc<Server>,
    /// The number of the last break before the call began.
    pub serial: u64,
    /// When it began.
    pub started: Instant,
    /// For whom it was made: whose rights it tells.
    pub token: TokenId,
}

/// The outcome, and whether an earlier attempt may have been carried out although no answer came.
pub(crate) struct Tried<T> {
    pub result: Result<Answered<T>>,
    pub unsure: bool,
}

impl Venus {
    /// Makes a plain call to a volume's sites.
    pub(super) async fn call<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        request: R,
    ) -> Result<Answered<R::Reply>>
    where
        R::Reply: Send,
    {
        self.call_tried(volume, request).await.result
    }

    /// The same, for calls that must not be carried out twice without noticing.
    pub(super) async fn call_tried<R: Request + Clone>(
        &self,
        volume: &Arc<Volume>,
        request: R,
    ) -> Tried<R::Reply>
    where
        R::Reply: Send,
    {
        self.on_sites(volume, R::NAME, |target| {
            let request = request.clone();
            async move { target.connection.call(&request).await }
        })
        .await
    }

    /// Makes attempts at a volume's sites until the ladder says that one was the last.
    pub(super) async fn on_sites<T, F, Fut>(
        &self,
        volume: &Arc<Volume>,
        operation: &'static str,
        mut attempt: F,
    ) -> Tried<T>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let began = self.now();
        self.settle_doubt(volume).await;
        let patience = self.patience();
        let mut sites = volume.sites(began);
        let mut ladder = Ladder::new(patience, &self.view(&sites));
        let mut step = ladder.first();
        let mut failure = Failure::new(operation, volume, &sites);
        let mut unsure = false;
        let mut silent = false;
        loop {
            step = match step {
                Step::Try { site, address } => {
                    let Some(target) = self.target_at(volume, &sites, site, address) else {
                        return Tried { result: Err(failure.of(ErrorKind::ServerAway)), unsure };
                    };
                    let hedged = has_alternative(volume, &sites, site);
                    match self.attempt(&target, operation, hedged, &mut attempt).await {
                        Ok(answered) => {
                            self.measured_by(&target, &sites);
                            return Tried { result: Ok(answered), unsure };
                        }
                        // His token is worthless; as nobody in particular he may still be served.
                        Err((error, _)) if self.was_expired(&target, &error) => step,
                        Err((error, outcome)) => {
                            silent = error.is_silence();
                            unsure |= silent;
                            failure.note(&target, &error);
                            if unsure && self.manner == Manner::Once {
                                return Tried { result: Err(failure.of(ErrorKind::ServerAway)), unsure };
                            }
                            ladder.next(outcome, self.now().saturating_since(began))
                        }
                    }
                }
                Step::Pause(pause) => {
                    tracing::debug!(volume = %volume.id, operation, "waiting for a busy volume");
                    self.env.sleep(self.spread(pause)).await;
                    sites = volume.sites(self.now());
                    ladder.resumed(&self.view(&sites), self.now().saturating_since(began))
                }
                Step::Await(most) => match self.await_return(volume, most).await {
                    Ok(true) => {
                        sites = volume.sites(self.now());
                        ladder.returned(&self.view(&sites), self.now().saturating_since(began))
                    }
                    Ok(false) => ladder.abandoned(),
                    Err(kind) => Step::Fail(kind),
                },
                Step::Relocate => {
                    let changed = self.relocate_within(volume, silent).await;
                    sites = volume.sites(self.now());
                    ladder.relocated(&self.view(&sites), changed, self.now().saturating_since(began))
                }
                Step::Answer(code) => {
                    return Tried { result: Err(failure.answer(code)), unsure };
                }
                Step::Fail(kind) => return Tried { result: Err(failure.of(kind)), unsure },
            };
        }
    }

    fn patience(&self) -> Patience {
        Patience {
            total: self.limits.operation_max,
            offline: self.limits.offline_max,
            pause: self.limits.busy_pause,
            pause_max: self.limits.busy_pause_max,
        }
    }

    /// A pause up to a quarter longer, so that all who wait for the same volume do not come back at the same moment.
    pub(super) fn spread(&self, pause: Duration) -> Duration {
        pause + pause / 4 * (self.env.random_u64() % 256) as u32 / 256
    }

    /// Of several sites, how near the one is that answered.
    fn measured_by(&self, target: &Target, sites: &[Arc<Server>]) {
        if sites.len() > 1
            && let Some(smoothed) = self.rx.round_trip(target.address.peer)
        {
            target.address.known_round_trip(smoothed);
        }
    }

    fn target_at(
        &self,
        volume: &Volume,
        sites: &[Arc<Server>],
        site: usize,
        address: usize,
    ) -> Option<Target> {
        let server = sites.get(site)?;
        let address = server.addresses().get(address)?.clone();
        let proof = self.proof(volume.cell);
        let connection = address.connection(&self.rx, &proof);
        Some(Target { server: server.clone(), address, connection, token: proof.id })
    }

    /// Whether a call failed because of a token whose time is over, and which is not used again.
    fn was_expired(&self, target: &Target, error: &CallError) -> bool {
        error.abort_code().is_some_and(is_expiry) && self.token_refused(target.token)
    }

    /// For each site, which of its addresses to pass by.
    fn view(&self, sites: &[Arc<Server>]) -> Vec<Vec<bool>> {
        let site =
            |server: &Arc<Server>| server.addresses().iter().map(|address| address.is_silent()).collect();
        sites.iter().map(site).collect()
    }

    async fn attempt<T, F, Fut>(
        &self,
        target: &Target,
        operation: &'static str,
        hedged: bool,
        attempt: &mut F,
    ) -> std::result::Result<Answered<T>, (CallError, Outcome)>
    where
        F: FnMut(Target) -> Fut + Send,
        Fut: Future<Output = std::result::Result<T, CallError>> + Send,
        T: Send,
    {
        let begun = self.now();
        let work = async {
            self.greet(target).await?;
            self.counters.call(operation);
            let (serial, started) = (self.promises.serial(), self.now());
            let value = attempt(target.clone()).await?;
            let (server, token) = (target.server.clone(), target.token);
            Ok(Answered { value, server, serial, started, token })
        };
        let done = if hedged { self.watched(target, work).await } else { work.await };
        let done = done.map_err(|error| {
            let outcome = Self::outcome(target, &error, begun);
            (error, outcome)
        });
        self.judge(target, begun, done.as_ref().err());
        done
    }

    /// Makes a call while others could be asked instead: if it takes long and the server gives no sign of life meanwhile,
    /// the call is given up long before the server would count as dead.
    async fn watched<T: Send>(
        &self,
        target: &Target,
        work: impl Future<Output = std::result::Result<T, CallError>> + Send,
    ) -> std::result::Result<T, CallError> {
        let round_trip = target.address.round_trip();
        let patience = (round_trip * 16).min(HEDGE_PATIENCE_MAX).max(self.limits.hedge_patience);
        let mut wait = (round_trip * 8).min(HEDGE_AFTER_MAX).max(self.limits.hedge_after);
        let mut work = pin!(work);
        loop {
            if let Either::Left(done) = select(work.as_mut(), self.env.sleep(wait)).await {
                return done;
            }
            let sign = self.env.timeout(patience, self.probe(target, target.address.probing()));
            match select(work.as_mut(), sign).await {
                Either::Left(done) => return done,
                Either::Right(Ok(Ok(()))) => wait = (wait * 2).min(HEDGE_AFTER_MAX),
                Either::Right(Ok(Err(error))) => return Err(error),
                Either::Right(Err(_)) => return Err(CallError::Unreachable { peer: target.address.peer }),
            }
        }
    }

    /// The ladder's view of an error of a call begun at `begun`. Silence is only that of this call when the server has
    /// answered others since: one that was restarted knows nothing of calls from before. If it has gone away after all,
    /// the next attempt, which nothing was heard after, says so.
    fn outcome(target: &Target, error: &CallError, begun: Instant) -> Outcome {
        match outcome_of(error) {
            Outcome::Silent if target.address.heard_since(begun) => Outcome::Lost,
            outcome => outcome,
        }
    }

    /// Notes what an attempt that began at `begun` says about the address.
    fn judge(&self, target: &Target, begun: Instant, failed: Option<&(CallError, Outcome)>) {
        let now = self.now();
        let peer = target.address.peer;
        match failed {
            Some((_, outcome)) if marks_down(*outcome) => {
                if target.address.fell_silent(begun, now) {
                    tracing::warn!(server = %peer, "lost contact with file server");
                }
                self.watch(target);
            }
            Some((CallError::Abort(_), _)) | None => {
                if target.address.answered(now) {
                    tracing::info!(server = %peer, "file server is back up");
                    self.heard.notify_all();
                    self.make_good_later();
                }
            }
            Some(_) => {}
        }
    }

    /// The first call to a server at an address. It makes the server ask who we are and tell us to forget whatever it
    /// had promised before, so that the call that brings the first promise does not run into that
    /// (docs/protocol/callback.md "5.1 First contact"). It also measures the way.
    pub(super) async fn greet(&self, target: &Target) -> std::result::Result<(), CallError> {
        if target.address.greeted.load(Ordering::SeqCst) {
            return Ok(());
        }
        let _turn = target.address.greeting.lock().await;
        if target.address.greeted.load(Ordering::SeqCst) {
            return Ok(());
        }
        self.probe(target, target.address.anonymous()).await?;
        target.address.greeted.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Asks for a sign of life. Any answer is one.
    async fn probe(&self, target: &Target, through: Connection) -> std::result::Result<(), CallError> {
        let started = self.now();
        self.counters.call(fs::GetCapabilities::NAME);
        match through.call(&fs::GetCapabilities {}).await {
            Err(error) if marks_down(outcome_of(&error)) || !matches!(error, CallError::Abort(_)) => {
                Err(error)
            }
            _ => {
                target.address.measured(self.now().saturating_since(started));
                Ok(())
            }
        }
    }

    /// A probe whose outcome is noted.
    pub(super) async fn probe_and_judge(&self, target: &Target) {
        let begun = self.now();
        let done = self.probe(target, target.address.probing()).await;
        let failed = done.err().map(|error| {
            let outcome = Self::outcome(target, &error, begun);
            (error, outcome)
        });
        self.judge(target, begun, failed.as_ref());
    }
}

/// Whether a call to one site of a volume may be given up for another: nothing can be changed twice, and somebody else is there.
fn has_alternative(volume: &Volume, sites: &[Arc<Server>], at: usize) -> bool {
    let mut others = sites.iter().enumerate().filter(|(index, _)| *index != at);
    !volume.is_writable() && others.any(|(_, server)| !server.is_silent())
}

/// Longest time before a server of several is asked for a sign of life, and longest time for that.
const HEDGE_AFTER_MAX: Duration = Duration::from_secs(2);
const HEDGE_PATIENCE_MAX: Duration = Duration::from_secs(4);

/// Whether the server says that the token's time is over (docs/protocol/rxkad.md, docs/protocol/rxgk.md).
fn is_expiry(code: AbortCode) -> bool {
    matches!(code, AbortCode::VICETOKENDEAD | AbortCode::RXKADEXPIRED | AbortCode::RXGKEXPIRED)
}

/// The ladder's view of an error.
pub(super) fn outcome_of(error: &CallError) -> Outcome {
    match error {
        CallError::Abort(code) => Outcome::Abort(*code),
        CallError::Unreachable { .. } => Outcome::Silent,
        CallError::Timeout => Outcome::Slow,
        CallError::Closed => Outcome::Closed,
        CallError::GivenUp(code) => Outcome::Abort(*code),
        _ => Outcome::Nonsense,
    }
}

/// What is known of a failure so far.
struct Failure(VenusError, Arc<Volume>);

impl Failure {
    fn new(operation: &'static str, volume: &Arc<Volume>, sites: &[Arc<Server>]) -> Self {
        let mut error = VenusError::new(ErrorKind::ServerAway, operation);
        error.fid = Some(afs_wire::ids::Fid::whole_volume(volume.id));
        // Named even if it is not called, because it is known to be away.
        error.server =
            sites.first().and_then(|server| server.addresses().first().map(|address| address.peer));
        Failure(error, volume.clone())
    }

    fn note(&mut self, target: &Target, error: &CallError) {
        self.0.server = Some(target.address.peer);
        self.0.code = error.abort_code();
    }

    fn of(&self, kind: ErrorKind) -> VenusError {
        let is_volume =
            matches!(kind, ErrorKind::NoVolume | ErrorKind::VolumeOffline | ErrorKind::VolumeBusy);
        let volume = is_volume.then(|| self.1.name().into());
        VenusError { kind, volume, ..self.0.clone() }
    }

    fn answer(&self, code: AbortCode) -> VenusError {
        VenusError { code: Some(code), ..self.of(ErrorKind::of_abort(code)) }
    }
}
