//! In which session a process is: asked from above, within bounds.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::sync::oneshot;
use afs_rpc::{EnvExt, EnvRef};

use crate::api::{Requester, SessionLookup};

/// How long a request waits until the session of its process is found.
const FIND_MAX: Duration = Duration::from_secs(2);

/// What finds sessions, if anything does.
pub(super) struct Sessions {
    env: EnvRef,
    lookup: Option<Arc<dyn SessionLookup>>,
}

impl Sessions {
    pub fn new(env: EnvRef, lookup: Option<Arc<dyn SessionLookup>>) -> Self {
        Sessions { env, lookup }
    }

    /// The session of a process. One that cannot be found within two seconds counts as none.
    pub async fn find(&self, requester: Requester) -> Option<u128> {
        let (found, session) = oneshot::channel();
        self.lookup.as_ref()?.find_session(requester, Box::new(move |session| _ = found.send(session)));
        self.env.timeout(FIND_MAX, session).await.ok()?.ok()?
    }
}
