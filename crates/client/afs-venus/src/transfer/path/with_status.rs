//! Capabilities that come with the status of files, so that they cost no call of their own.

use afs_rpc::Instant;
use afs_wire::fs::CapabilityOutcome;
use afs_wire::ids::Fid;

use super::capabilities::Use;
use super::grants::given;
use super::server::{IN_USE, ServerPath};
use crate::identity::TokenId;

impl ServerPath {
    /// Whether a call for the status of files of a directory should ask for the capability to read them: the path is used,
    /// and there is none that lasts.
    pub(super) fn lacks_capability(&self, token: TokenId, directory: Fid) -> bool {
        let now = self.now();
        self.state().0 == IN_USE
            && !self.server.has_no_data_path(now)
            && self.capabilities.lock().lacks(token, directory, now)
    }

    /// What such a call, which began at a time, has brought.
    pub(super) fn capability_came(
        &self,
        token: TokenId,
        directory: Fid,
        outcome: CapabilityOutcome,
        asked: Instant,
    ) {
        let capability = outcome.into_capability().ok();
        if let Some(given) = capability.and_then(|capability| given(&capability, Use::Read, asked)) {
            self.capabilities.lock().came(token, directory, given, self.now());
            self.changed.notify_waiters();
        }
    }
}
