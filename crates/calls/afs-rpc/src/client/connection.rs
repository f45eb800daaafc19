//! Client connection: a handle to a service at a peer, over pooled Rx connections.

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

/// Time limits of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallOptions {
    /// Longest silence of the peer before the call fails with [`CallError::Unreachable`]. At least 6 s; `None` is the
    /// endpoint's default, 12 s.
    pub dead: Option<Duration>,
    /// Longest duration of the whole call before it fails with [`CallError::Timeout`]. `None` is no limit.
    pub hard: Option<Duration>,
}

/// A handle to a service at a peer. Cheap to clone; all clones, and all connections made with the same arguments,
/// share a few Rx connections, which are opened when calls need them and closed when idle.
///
/// Calls beyond [`Limits::connections`](crate::Limits::connections) times four wait for an earlier one to end, in
/// their order.
#[derive(Clone)]
pub struct Connection {
    rx: Rx,
    key: PoolKey,
    security: Security,
    channels: Arc<Channels>,
    limits: CallLimits,
}

/// Limits of a call beside those of its connection.
#[derive(Clone, Copy, Default)]
pub(crate) struct CallLimits {
    /// Longest duration of the whole call.
    pub(crate) hard: Option<Duration>,
    /// How long the begin of the request is sent again.
    pub(crate) repeat: Option<Duration>,
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
        Self { rx, key, security, channels, limits: CallLimits::default() }
    }

    /// The same service with other time limits.
    #[must_use]
    pub fn with_options(mut self, options: CallOptions) -> Self {
        if self.key.dead != options.dead {
            self.key.dead = options.dead;
            self.channels = self.rx.channels(&self.key);
        }
        self.limits.hard = options.hard;
        self
    }

    /// The same service, where the begin of a request is sent again only for this long while the peer has not acknowledged it. Otherwise it is
    /// until the call ends, and a peer that is restarted meanwhile gets the call too: for requests with a number that only one process of the
    /// peer knows.
    #[must_use]
    pub fn repeating_for(mut self, limit: Duration) -> Self {
        self.limits.repeat = Some(limit);
        self
    }

    /// The peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.key.peer
    }

    /// The transport.
    #[must_use]
    pub fn rx(&self) -> &Rx {
        &self.rx
    }

    /// Sends a request and waits for the reply. Dropping the future aborts the call.
    ///
    /// # Errors
    /// [`CallError::Abort`] is the server's reply; any other error means that no reply was received.
    pub async fn call<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        let mut call = self.begin(Bytes::from(rpc::encode_call(request)), true).await?;
        let reply = call.read_to_end(self.rx.limits().reply).await?;
        Ok(rpc::decode_reply::<R>(&reply)?)
    }

    /// Sends the arguments of a split call; the caller then writes raw bytes, or calls [`ClientCall::finish_request`]
    /// at once, and reads the reply.
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
        self.rx.open(&self.channels, self.key.peer, &self.security, self.limits, head, whole)
    }

    /// A permit is held, so a channel is about to become free: its last call is ending.
    async fn wait_for_channel(&self, head: &mut Bytes, whole: bool) -> Result<CallId, CallError> {
        loop {
            // Created before the check, so that a channel that becomes free in between is not missed.
            let changed = self.channels.changed.notified();
            match self.open_call(head, whole)? {
                Some(call) => return Ok(call),
                None => changed.await,
            }
        }
    }
}
