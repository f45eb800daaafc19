//! Clock of a file server, as far as it is from that of this machine.

use afs_rpc::UnixTime;
use parking_lot::Mutex;

/// How many seconds a server's clock was ahead of this machine's when the server was asked last: `None` before that, and then
/// `Some(None)` if it does not tell.
#[derive(Default)]
pub(crate) struct ServerClock(Mutex<Option<Option<i64>>>);

impl ServerClock {
    /// The server was asked, and told its time, in seconds since 1970, in a reply that came at `now`.
    pub fn note(&self, seconds: Option<u32>, now: UnixTime) {
        *self.0.lock() = Some(seconds.map(|seconds| i64::from(seconds) - i64::from(now.secs_u32())));
    }

    /// True if the server was never asked.
    pub fn is_unknown(&self) -> bool {
        self.0.lock().is_none()
    }

    /// Seconds that it is ahead; negative if it is behind. `None`: not known. Off by a second, and by the way of the reply.
    pub fn ahead(&self) -> Option<i64> {
        self.0.lock().flatten()
    }
}
