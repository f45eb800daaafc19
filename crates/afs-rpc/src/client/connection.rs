//! A service at a peer, ready to be called.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afs_rx::CallId;
use afs_wire::rpc::{self, Request, ServiceId};
use bytes::Bytes;

use super::call::ClientCall;
use super::security::Security;
use crate::error::CallError;
use crate::rx::stream::Stream;
use crate::rx::{Channels, PoolKey, Rx};

/// How patient a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallOptions {
    /// Longest silence of the peer before the call fails with [`CallError::Unreachable`]. At least 6 s; `None` is the
    /// endpoint's default, 12 s.
    pub dead: Option<Duration>,
    /// Longest duration of the whole call before it fails with [`CallError::Timeout`]. `None` is no limit.
    pub hard: Option<Duration>,
}

/// A service at a peer, ready to be called. Cheap to clone; all clones, and all connections made with the same
/// arguments, share a few Rx connections, which are opened when calls need them and closed when idle.
///
/// Calls beyond [`Limits::connections`](crate::Limits::connections) times four wait for an earlier one to end, in the
/// order they came.
#[derive(Clone)]
pub struct Connection {
    rx: Rx,
    key: PoolKey,
    security: Security,
    channels: Arc<Channels>,
    options: CallOptions,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({} service {})", self.key.peer, self.key.service)
    }
}

impl Connection {
    pub(crate) fn new(rx: Rx, peer: SocketAddr, service: ServiceId, security: Security) -> Self {
        let key = PoolKey { peer, service: service.0, security: security.name(), dead: None };
        let channels = rx.channels(&key);
        Self { rx, key, security, channels, options: CallOptions::default() }
    }

    /// The same service with other patience.
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        if self.key.dead != options.dead {
            self.key.dead = options.dead;
            self.channels = self.rx.channels(&self.key);
        }
        self.options = options;
        self
    }

    /// Who is called.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.key.peer
    }

    /// The transport.
    #[must_use]
    pub fn rx(&self) -> &Rx {
        &self.rx
    }

    /// Asks and waits for the answer. Dropping the future gives the call up.
    ///
    /// # Errors
    /// [`CallError::Abort`] is the server's answer; anything else means that no answer was had.
    pub async fn call<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        let mut call = self.begin(Bytes::from(rpc::encode_call(request)), true).await?;
        let reply = call.read_to_end(self.rx.limits().reply).await?;
        Ok(rpc::decode_reply::<R>(&reply)?)
    }

    /// Sends the arguments of a split call and leaves the rest of it to the caller: raw bytes to write, or
    /// [`ClientCall::finish_request`] at once, then the reply.
    ///
    /// # Errors
    /// Why the call could not be made.
    pub async fn open<R: Request>(&self, request: &R) -> Result<ClientCall, CallError> {
        self.begin(Bytes::from(rpc::encode_call(request)), false).await
    }

    /// Begins a call whose request starts with `head`, and ends with it if it is `whole`.
    ///
    /// # Errors
    /// Why the call could not be made.
    pub async fn begin(&self, head: Bytes, whole: bool) -> Result<ClientCall, CallError> {
        let permit = self.channels.free.clone().acquire_owned().await.map_err(|_| CallError::Closed)?;
        let mut head = head;
        let call = match self.open_call(&mut head, whole)? {
            Some(call) => call,
            None => self.wait_for_channel(&mut head, whole).await?,
        };
        let mut call = ClientCall::new(Stream::outgoing(self.rx.clone(), call, self.key.peer), permit);
        if !head.is_empty() {
            call.write(head).await?;
            if whole {
                call.finish_request()?;
            }
        }
        Ok(call)
    }

    fn open_call(&self, head: &mut Bytes, whole: bool) -> Result<Option<CallId>, CallError> {
        self.rx.open(&self.channels, self.key.peer, &self.security, self.options.hard, head, whole)
    }

    /// A permit is held, so a channel is about to become free: its last call is on its way out.
    async fn wait_for_channel(&self, head: &mut Bytes, whole: bool) -> Result<CallId, CallError> {
        loop {
            // Made before looking, so that a channel that becomes free in between is not missed.
            let changed = self.channels.changed.notified();
            match self.open_call(head, whole)? {
                Some(call) => return Ok(call),
                None => changed.await,
            }
        }
    }
}
