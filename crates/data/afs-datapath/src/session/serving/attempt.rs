//! A read or store of a file, for the record of a refusal.

use std::net::SocketAddr;
use std::sync::Arc;

use afs_wire::ids::Fid;

use super::grant::Grant;
use crate::capability::{Access, Capability};
use crate::frame::Failure;
use crate::session::objects::RefusedRequest;
use crate::session::{Drive, Error};

/// A read or store by a capability, or by one that was refused when it was presented.
pub(super) struct Attempt {
    pub drive: Arc<Drive>,
    pub peer: SocketAddr,
    pub capability: Option<Capability>,
    pub fid: Fid,
    pub access: Access,
}

impl Attempt {
    /// One that was permitted at first.
    pub fn by(grant: &Grant, fid: Fid, access: Access) -> Self {
        let capability = Some(grant.capability);
        Self { drive: grant.drive.clone(), peer: grant.peer, capability, fid, access }
    }

    /// Tells the objects of a refusal, if the failure is one.
    pub fn failed(&self, failure: Failure) {
        if let Failure::Refused(refusal) = failure {
            let Self { peer, capability, fid, access, .. } = *self;
            self.drive.objects.refused(&RefusedRequest { peer, capability, fid, access, refusal });
        }
    }

    /// How the attempt has ended.
    pub fn ended<T>(&self, outcome: &Result<T, Error>) {
        if let Err(Error::Failed(failure)) = outcome {
            self.failed(*failure);
        }
    }
}
