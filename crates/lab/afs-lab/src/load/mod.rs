//! Loads on a file server, by calls of our own: statuses per second, durable creations per second,
//! throughput.
//!
//! These measure the server (and the transport) without a cache manager in between: Howard et al. 1988 speak
//! of "load units", which the [`andrew`](crate::andrew) benchmark has; here the unit is one call. Time and
//! tasks are those of an [`Env`](afs_rpc::Env) given by the caller.

mod bulk;
mod by_path;
mod caller;
mod calls;
mod capability_costs;
mod connections;
mod costs;
mod error;
mod latency;
mod listing;
mod repeated;
mod room_costs;

pub(crate) use bulk::put;
pub use bulk::{Throughput, fetch, remove, store};
pub use caller::callbacks;
pub use calls::{Rate, creations, names, statuses};
pub use capability_costs::{CAPABILITY_CALLS, REQUESTS};
pub use connections::{Connect, connections, first_calls};
pub use costs::{Costs, ENTRIES, SIZES};
pub(crate) use error::During;
pub use error::LoadError;
pub use latency::Latency;
pub(crate) use latency::Times;
pub use listing::{Beside, Listing, beside, list};
pub use repeated::{Repeated, statuses_until};

use std::time::Duration;

use afs_rpc::{Connection, EnvExt, EnvRef};
use afs_wire::error::AbortCode;
use afs_wire::ids::Fid;
use afs_wire::rpc::Request;

/// Target of a load.
#[derive(Clone, Debug)]
pub struct Target {
    /// Time and tasks.
    pub env: EnvRef,
    /// The file service of the server under load.
    pub files: Connection,
    /// A directory in which the caller may create and remove. Loads clean up after themselves.
    pub directory: Fid,
}

/// Attempts at a call that the server is too busy for.
const TRIES: u32 = 100;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

impl Target {
    /// Makes a call. OpenAFS's file server answers `VBUSY` while it identifies a client that comes with many
    /// connections at once: like every client, this one retries.
    pub(crate) async fn call<R: Request>(&self, request: &R) -> Result<R::Reply, LoadError> {
        for _ in 1..TRIES {
            match self.files.call(request).await {
                Err(error) if error.abort_code() == Some(AbortCode::VBUSY) => self.env.sleep(PAUSE).await,
                outcome => return outcome.during(R::NAME),
            }
        }
        self.files.call(request).await.during(R::NAME)
    }
}
