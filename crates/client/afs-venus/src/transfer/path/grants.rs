//! Capabilities from the file server: asked for once for all who need the same, and again before they end.

use std::sync::Arc;
use std::time::Duration;

use afs_datapath::capability::{ByteRange, Capability, Refusal, Secret};
use afs_rpc::{CallError, EnvExt, Instant};
use afs_wire::error::AbortCode;
use afs_wire::fs::{
    self, CapabilityOutcome, CapabilityRequest, CapabilityRequests, DriveCapability, OWN_DRIVE,
};
use afs_wire::rpc::Request;
use afs_wire::xdr::Decode;

use super::capabilities::{Given, Lookup, Need, Use};
use super::link::Link;
use super::opening::CALL_MAX;
use super::server::{Common, ServerPath};
use crate::calls::Target;

/// How long a fetch or store waits for a capability. The call for it continues, so that a later one finds it.
pub(super) const WAIT: Duration = Duration::from_millis(500);
/// Longest life that is believed.
const LIFE_MAX: Duration = Duration::from_secs(3600);

impl ServerPath {
    /// A capability for the user of a target that the drive of a connection may honour; `None` if there is none in time.
    pub(super) async fn capability(
        self: &Arc<Self>,
        target: &Target,
        need: &Need,
        link: &Link,
    ) -> Option<Arc<Given>> {
        let until = self.now() + WAIT;
        loop {
            let changed = self.changed.notified();
            match self.look_up(need, link) {
                Lookup::Here(given) => return Some(given),
                Lookup::Due(given) => {
                    self.renew(target, need);
                    return Some(given);
                }
                Lookup::Refused => return None,
                Lookup::Missing => self.ask_for(target, need),
                Lookup::Asked => {}
            }
            let left = until.saturating_since(self.now());
            self.common.env.timeout(left, changed).await.ok()?;
        }
    }

    /// What is in the table. A capability of another drive or key, as of before a restart of the server, is dropped.
    fn look_up(&self, need: &Need, link: &Link) -> Lookup {
        let now = self.now();
        let mut capabilities = self.capabilities.lock();
        let found = capabilities.look_up(need, now);
        let (Lookup::Here(given) | Lookup::Due(given)) = &found else { return found };
        if (given.capability.drive, given.capability.epoch) == (link.session.drive(), link.session.epoch()) {
            return found;
        }
        capabilities.refused(need, given, Refusal::OtherEpoch, now);
        capabilities.look_up(need, now)
    }

    pub(super) fn ask_for(self: &Arc<Self>, target: &Target, need: &Need) {
        let (me, target, need) = (self.clone(), target.clone(), *need);
        self.common.env.spawn(Box::pin(async move {
            let reply = me.get_capability(&target, &need).await;
            me.capabilities.lock().answered(&need, reply, me.now());
            me.changed.notify_waiters();
        }));
    }

    async fn get_capability(&self, target: &Target, need: &Need) -> Option<Given> {
        let asked = self.now();
        let wanted = CapabilityRequest { fid: need.fid, access: need.used.wanted(), drive: OWN_DRIVE };
        let capability = self.outcomes(target, [wanted]).await?.pop()?.into_capability().ok()?;
        given(&capability, need.used, asked).filter(|given| given.capability.group.may_cover(need.fid))
    }

    /// What the file server replies to requests for capabilities of its own drive; `None` if it does not.
    pub(super) async fn outcomes(
        &self,
        target: &Target,
        wanted: impl IntoIterator<Item = CapabilityRequest>,
    ) -> Option<Vec<CapabilityOutcome>> {
        let reset = self.server.reset.get();
        let outcomes = self.common.get_capabilities(target, wanted).await;
        let is_none = |outcome: &CapabilityOutcome| outcome.error == AbortCode::RXGEN_OPCODE;
        let has_none = match &outcomes {
            Ok(outcomes) => outcomes.iter().any(is_none),
            Err(error) => matches!(error, CallError::Abort(AbortCode::RXGEN_OPCODE)),
        };
        if has_none {
            self.server.no_data_path.note(self.now(), reset);
        }
        outcomes.ok()
    }
}

impl Common {
    /// Asks for capabilities: the outcomes, in the order of the requests.
    pub(super) async fn get_capabilities(
        &self,
        target: &Target,
        wanted: impl IntoIterator<Item = CapabilityRequest>,
    ) -> Result<Vec<CapabilityOutcome>, CallError> {
        self.counters.call(fs::GetCapability::NAME);
        let request = fs::GetCapability { wanted: CapabilityRequests::first_of(wanted) };
        let reply = self.env.timeout(CALL_MAX, target.connection.call(&request)).await;
        Ok(reply.unwrap_or(Err(CallError::Misuse))?.outcomes.into_vec())
    }
}

/// The capability of a reply, if it permits such a use from a file's first byte on. Its group is to be looked at by the caller.
pub(super) fn given(reply: &DriveCapability, used: Use, asked: Instant) -> Option<Given> {
    let capability = Capability::from_bytes(reply.arguments.as_bytes()).ok()?;
    let permits = capability.access.permits(used.access()) && capability.range.contains(ByteRange::at(0, 0)?);
    let life = Duration::from_secs(reply.seconds.into()).min(LIFE_MAX);
    let secret = Secret::new(reply.secret.0);
    (permits && !life.is_zero()).then(|| Given { number: 0, capability, secret, asked, ends: asked + life })
}
