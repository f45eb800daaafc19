//! The client's end of a connection.

mod arriving;
mod chunks;
mod handle;
mod leaving;
mod opening;
mod role;
mod staging;
mod streams;

use std::sync::Arc;

use afs_env::sync::{OwnedSemaphorePermit, Semaphore};
use afs_env::{ByteStream, EnvRef};
use afs_wire::ids::{DataVersion, Fid};

pub use arriving::Arriving;
pub use chunks::chunk_pieces;
pub use handle::Handle;
pub use leaving::Leaving;

use super::limits::READ_WINDOW;
use super::link::Link;
use super::receiving::Receiving;
use super::request::{Awaited, Reply, Request};
use super::sending::Sending;
use super::{Error, Lost, Patience};
use crate::capability::{ByteRange, Capability, DriveId, KeyEpoch, Nonces, Proof, Secret};
use crate::frame::{Message, Presented, RequestId, StoreDescription, Welcome};
use crate::tls::Security;
use handle::Handles;

/// Most requests that a client has in progress on one connection, even where the drive permits more: each may hold 1 MiB.
const REQUESTS_MAX: u32 = 32;

/// A connection to a drive. Clones are the same connection; it is closed when all of them are dropped, and all handles and
/// requests.
#[derive(Clone)]
pub struct Client(Arc<Shared>);

struct Shared {
    link: Link,
    welcome: Welcome,
    nonces: Nonces,
    handles: Handles,
    places: Arc<Semaphore>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.link.with(|state| state.close());
    }
}

impl Client {
    /// Opens a connection on a stream that was just connected: TLS as `security` says, then the first frames. Takes at most
    /// [`Patience::handshake`].
    ///
    /// # Errors
    /// [`Lost::Key`] for a drive with another key than that of the fingerprint, [`Goodbye::Version`](crate::frame::Goodbye::Version)
    /// from one that speaks another version, and others.
    pub async fn open(
        env: EnvRef,
        stream: Box<dyn ByteStream>,
        security: Security,
        patience: Patience,
    ) -> Result<Self, Lost> {
        let opened = opening::open(&env, stream, security, &patience).await?;
        let (link, welcome) = (opened.link.clone(), opened.welcome);
        let shared = Shared {
            link,
            welcome,
            nonces: opened.nonces,
            handles: Handles::new(welcome.handles_max),
            places: Arc::new(Semaphore::new(welcome.requests_max.clamp(1, REQUESTS_MAX) as usize)),
        };
        opened.drive(&env, patience);
        Ok(Self(Arc::new(shared)))
    }

    /// The drive at the other end, as it says itself. A capability for another one would be refused there.
    #[must_use]
    pub fn drive(&self) -> DriveId {
        self.0.welcome.drive
    }

    /// The epoch of the drive's key when the connection was opened.
    #[must_use]
    pub fn epoch(&self) -> KeyEpoch {
        self.0.welcome.epoch
    }

    /// Why the connection has ended; `None` while it lives.
    #[must_use]
    pub fn lost(&self) -> Option<Lost> {
        self.0.link.lost()
    }

    /// Completes when the connection has ended.
    pub async fn ended(&self) -> Lost {
        self.0.link.ended().await
    }

    /// Makes a capability usable on this connection. Sends a proof and does not wait: requests by the handle fail with
    /// [`Failure::Refused`](crate::frame::Failure::Refused) if the drive refuses it. The secret is not kept.
    ///
    /// # Errors
    /// [`Error::Handles`] when as many are in use as the drive permits, [`Error::Lost`].
    pub fn present(&self, capability: &Capability, secret: &Secret) -> Result<Handle, Error> {
        if let Some(lost) = self.lost() {
            return Err(lost.into());
        }
        let proof = Presented(Proof::new(capability, secret, &self.0.nonces));
        Handle::new(self, |handle| Message::Present { handle, capability: *capability, proof })
    }

    /// Asks for bytes of one version of a file, and waits until the drive has announced them. Waits before while as many
    /// requests are in progress as the drive permits. Dropping the future cancels the request.
    ///
    /// # Errors
    /// [`Failure::OtherVersion`](crate::frame::Failure::OtherVersion), a refusal and others as [`Error::Failed`];
    /// [`Error::Stalled`]; [`Error::Lost`].
    pub async fn read(
        &self,
        handle: &Handle,
        fid: Fid,
        range: ByteRange,
        version: DataVersion,
    ) -> Result<Arriving, Error> {
        let credit = u32::try_from(range.len()).unwrap_or(u32::MAX).min(READ_WINDOW);
        let place = self.place().await?;
        let request = self.begin(
            place,
            |now| {
                Request::new(
                    Sending::default(),
                    Receiving::new(0, credit),
                    Awaited::Announcement(range.len()),
                    now,
                )
            },
            |request| Message::Read { request, handle: handle.number(), fid, range, version, credit },
        )?;
        match request.client.0.link.reply(request.id).await? {
            Reply::Announced { length, file_length } => Ok(Arriving::new(request, length, file_length)),
            _ => Err(Lost::Violation("another reply than an announcement for a read").into()),
        }
    }

    /// Begins a store. Waits while as many requests are in progress as the drive permits.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub async fn store(&self, handle: &Handle, description: &StoreDescription) -> Result<Leaving, Error> {
        let place = self.place().await?;
        let request = self.begin(
            place,
            |now| {
                let sending = Sending::new(description.total(), self.0.welcome.store_credit.into());
                Request::new(sending, Receiving::default(), Awaited::Ticket, now)
            },
            |request| Message::Store { request, handle: handle.number(), description: description.clone() },
        )?;
        Ok(Leaving::new(request))
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        // The semaphore is never closed.
        self.0.places.clone().acquire_owned().await.map_err(|_| Lost::Closed.into())
    }

    /// Numbers a request and sends it, as one step: the drive gets the numbers in ascending order.
    fn begin(
        &self,
        place: OwnedSemaphorePermit,
        request: impl FnOnce(afs_env::Instant) -> Request,
        message: impl FnOnce(RequestId) -> Message,
    ) -> Result<Begun, Error> {
        let now = self.0.link.now();
        let id = self.0.link.with(|state| {
            if let Some(lost) = state.lost() {
                return Err(lost.clone());
            }
            let id = state.issue().ok_or(Lost::Closed)?;
            state.begin(id, request(now), now);
            state.send(&message(id));
            Ok(id)
        })?;
        Ok(Begun { client: self.clone(), id, _place: place })
    }
}

/// A request of this client. Dropping it cancels the request, unless it is over.
struct Begun {
    client: Client,
    id: RequestId,
    _place: OwnedSemaphorePermit,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.client.0.link.with(|state| state.release(self.id));
    }
}
