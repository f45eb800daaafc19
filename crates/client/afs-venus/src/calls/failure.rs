//! Error of a failed call, collected over its attempts.

use std::sync::Arc;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::Fid;

use crate::calls::Target;
use crate::error::{ErrorKind, VenusError};
use crate::location::{Server, Volume};

/// The error so far, and the volume.
pub(super) struct Failure(VenusError, Arc<Volume>);

impl Failure {
    pub fn new(operation: &'static str, volume: &Arc<Volume>, sites: &[Arc<Server>]) -> Self {
        let mut error = VenusError::new(ErrorKind::ServerUnreachable, operation);
        error.fid = Some(Fid::whole_volume(volume.id));
        // Reported even if it is not called because it is known to be unreachable.
        error.server =
            sites.first().and_then(|server| server.addresses().first().map(|address| address.peer));
        Failure(error, volume.clone())
    }

    pub fn note(&mut self, target: &Target, error: &CallError) {
        self.0.server = Some(target.address.peer);
        self.0.code = error.abort_code();
    }

    pub fn of(&self, kind: ErrorKind) -> VenusError {
        let is_volume =
            matches!(kind, ErrorKind::NoVolume | ErrorKind::VolumeOffline | ErrorKind::VolumeBusy);
        let volume = is_volume.then(|| self.1.name().into());
        VenusError { kind, volume, ..self.0.clone() }
    }

    pub fn reply(&self, code: AbortCode) -> VenusError {
        VenusError { code: Some(code), ..self.of(ErrorKind::of_abort(code)) }
    }
}
