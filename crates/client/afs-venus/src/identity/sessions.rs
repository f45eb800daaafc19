//! Sessions of processes: found through the caller of Venus, within a time limit.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::sync::oneshot;
use afs_rpc::{EnvExt, EnvRef};

use crate::api::{Requester, SessionLookup};

/// Longest time that a request waits for the session of its process.
const FIND_MAX: Duration = Duration::from_secs(2);

/// It is not known whether a process is in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotFound;

/// The finder of sessions, if there is one.
pub(super) struct Sessions {
    env: EnvRef,
    lookup: Option<Arc<dyn SessionLookup>>,
}

impl Sessions {
    pub fn new(env: EnvRef, lookup: Option<Arc<dyn SessionLookup>>) -> Self {
        Sessions { env, lookup }
    }

    /// The session of a process.
    ///
    /// # Errors
    /// The process cannot be examined, or not within two seconds.
    pub async fn find(&self, requester: Requester) -> Result<Option<u128>, NotFound> {
        let Some(lookup) = &self.lookup else { return Ok(None) };
        let (found, session) = oneshot::channel();
        lookup.find_session(requester, Box::new(move |session| _ = found.send(session)));
        self.env.timeout(FIND_MAX, session).await.map_err(|_| NotFound)?.map_err(|_| NotFound)
    }
}
