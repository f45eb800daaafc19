//! Clock of a file server, as far as it is from that of this machine.

use afs_rpc::UnixTime;
use parking_lot::Mutex;

/// How many seconds a server's clock was ahead of this machine's when the server was asked last.
#[derive(Default)]
pub(crate) struct ServerClock(Mutex<Option<i64>>);

impl ServerClock {
    /// The server has told its time, in seconds since 1970, in a reply that came at `now`.
    pub fn note(&self, seconds: u32, now: UnixTime) {
        *self.0.lock() = Some(i64::from(seconds) - i64::from(now.secs_u32()));
    }

    /// Seconds that it is ahead; negative if it is behind. `None`: not known. Off by a second, and by the way of the reply.
    pub fn ahead(&self) -> Option<i64> {
        *self.0.lock()
    }
}
