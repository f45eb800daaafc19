//! Permission of one request by a capability, looked at again with every piece.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_env::EnvRef;

use super::bound;
use crate::capability::{Capability, Changes, Refusal, Terms};
use crate::session::Drive;

/// A capability that permits a request in progress.
#[derive(Clone)]
pub(super) struct Grant {
    pub drive: Arc<Drive>,
    pub peer: SocketAddr,
    pub capability: Capability,
    /// Of a client's read of a chunk, that was bound or commanded.
    pub terms: Option<Box<Terms>>,
    env: EnvRef,
    seen: Changes,
}

impl Grant {
    /// Permission by a capability that was presented.
    ///
    /// # Errors
    /// [`Refusal::OtherEpoch`], [`Refusal::Expired`], [`Refusal::Revoked`].
    pub fn new(
        env: &EnvRef,
        drive: &Arc<Drive>,
        peer: SocketAddr,
        capability: Capability,
    ) -> Result<Self, Refusal> {
        let seen = drive.revocations.changes();
        if capability.epoch != drive.key().epoch() {
            return Err(Refusal::OtherEpoch);
        }
        if !drive.revocations.is_current(&capability) {
            return Err(Refusal::Revoked);
        }
        if capability.expires <= env.wall().secs {
            return Err(Refusal::Expired);
        }
        Ok(Self { drive: drive.clone(), peer, capability, terms: None, env: env.clone(), seen })
    }

    /// The environment of the connection.
    pub fn env(&self) -> &EnvRef {
        &self.env
    }

    /// Whether the capability is still good. A stream of a volume that has begun ends with the call that it belongs to.
    ///
    /// # Errors
    /// As [`Grant::new`].
    pub fn check(&mut self) -> Result<(), Refusal> {
        if self.capability.group.stream().is_some() {
            return Ok(());
        }
        if self.capability.expires <= self.env.wall().secs {
            return Err(Refusal::Expired);
        }
        // A new key counts as a change.
        let is_changed = self.drive.revocations.changes() != self.seen;
        if is_changed && self.capability.epoch != self.drive.key().epoch() {
            return Err(Refusal::OtherEpoch);
        }
        if !self.drive.revocations.is_still_current(&self.capability, &mut self.seen) {
            return Err(Refusal::Revoked);
        }
        if self.terms.as_deref().is_some_and(|terms| !bound::is_current(&self.drive, terms)) {
            return Err(Refusal::Revoked);
        }
        Ok(())
    }
}
