//! Steps that fetches and stores have in common: connection, capability, handle; and what an error means for each of them.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::session::{Error, Failure, Handle};
use afs_rpc::sync::OwnedSemaphorePermit;
use afs_rpc::{CallError, EnvExt};
use afs_wire::error::AbortCode;

use super::capabilities::{Given, Need};
use super::connect::PATIENCE;
use super::fallback::{Ended, Fallback};
use super::link::Link;
use super::server::ServerPath;
use crate::calls::Target;

/// Slowest rate at which a transfer is waited for, in bytes a second.
pub(super) const RATE_MIN: u64 = 16 << 10;

/// Why a transfer over a connection stopped.
pub(super) enum Stop {
    /// What the session says.
    Drive(Error),
    /// What came is not what was asked for.
    Wrong,
    /// The sink or the source does not continue.
    Here,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Drive(error)
    }
}

/// What a transfer is made with.
pub(super) struct Ready {
    pub link: Arc<Link>,
    pub given: Arc<Given>,
    pub handle: Handle,
    _permit: OwnedSemaphorePermit,
}

impl ServerPath {
    /// Prepares a transfer of so many bytes, which waits for a connection no longer than `wait`.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        target: &Target,
        need: &Need,
        bytes: u64,
        wait: Duration,
    ) -> Result<Ready, Ended> {
        let link = self.link(target, wait).await?;
        if bytes < link.offer.minimum_size {
            return Err(Ended::NoPath);
        }
        let permit = link.begin(self.now()).ok_or(Ended::Fallback(Fallback::Full))?;
        let given = self.capability(target, need, &link).await;
        let given = given.ok_or(Ended::Fallback(Fallback::NoCapability))?;
        match link.handle(&given, self.now()) {
            Ok(handle) => Ok(Ready { link, given, handle, _permit: permit }),
            Err(error) => Err(self.ended(&link, need, &given, Stop::Drive(error))),
        }
    }

    /// Runs a transfer of so many bytes within its time, and notes what comes of it.
    pub(super) async fn run<T: Send>(
        self: &Arc<Self>,
        ready: &Ready,
        need: &Need,
        bytes: u64,
        work: impl Future<Output = Result<T, Stop>> + Send,
    ) -> Result<T, Ended> {
        let most = PATIENCE.stall + Duration::from_secs(bytes / RATE_MIN);
        let done = self.common.env.timeout(most, work).await;
        match done.unwrap_or(Err(Stop::Drive(Error::Stalled))) {
            Ok(value) => {
                self.succeeded(&ready.link);
                Ok(value)
            }
            Err(stop) => Err(self.ended(&ready.link, need, &ready.given, stop)),
        }
    }

    fn ended(&self, link: &Arc<Link>, need: &Need, given: &Arc<Given>, stop: Stop) -> Ended {
        let why = match stop {
            Stop::Here => return Ended::Failed(CallError::GivenUp(AbortCode::VIO)),
            Stop::Wrong => Fallback::Protocol,
            Stop::Drive(error) => self.reason(link, need, given, &error),
        };
        let is_fruitless = why.is_of_request() && link.was_fruitless();
        if why.is_failure() || is_fruitless {
            self.failed(link, why);
        }
        Ended::Fallback(why)
    }

    fn reason(&self, link: &Link, need: &Need, given: &Arc<Given>, error: &Error) -> Fallback {
        if let Error::Failed(Failure::Refused(why)) = error {
            self.capabilities.lock().refused(need, given, *why, self.now());
            link.withdraw(given);
        }
        if matches!(error, Error::Failed(Failure::Unavailable)) {
            self.capabilities.lock().leave_alone(need, self.now());
        }
        Fallback::of(error)
    }
}
