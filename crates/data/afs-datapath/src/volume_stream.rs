//! A client's way to a stream of a volume: a connection of its own, by what the server that holds the volume has granted.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afs_env::{EnvExt, EnvRef};
use afs_wire::vol::StreamGrant;
use afs_wire::xdr::Decode;

use crate::addresses;
use crate::capability::{Capability, DriveId, Secret, StreamName};
use crate::session::{Arriving, Client, Error, Fingerprint, Handle, Leaving, Lost, Patience, Security};

/// How long a connection to one address may take.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long TLS and both first frames may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// A stream that a server has granted, and that has not begun.
pub struct GrantedStream {
    drive: DriveId,
    security: Security,
    addresses: Vec<SocketAddr>,
    capability: Capability,
    secret: Secret,
    stream: StreamName,
    /// Bytes below which the server wants a call instead.
    pub minimum_size: u64,
}

impl GrantedStream {
    /// What the server that was called at an address has granted. Without TLS it goes only if the drive offers that and this end
    /// allows it. `None` if the grant makes no sense: it is for no stream, or the drive is at no address.
    #[must_use]
    pub fn new(grant: &StreamGrant, called: IpAddr, allow_clear: bool) -> Option<Self> {
        let capability = Capability::from_bytes(&grant.capability.arguments).ok()?;
        let security = match allow_clear && grant.drive.clear {
            true => Security::Clear,
            false => Security::Tls(Fingerprint(grant.drive.fingerprint.0)),
        };
        let granted = Self {
            drive: DriveId(u128::from_be_bytes(grant.drive.drive.0)),
            security,
            addresses: addresses(&grant.drive, called),
            stream: capability.group.stream()?,
            capability,
            secret: Secret::new(grant.capability.secret.0),
            minimum_size: grant.drive.minimum_size,
        };
        (!granted.addresses.is_empty()).then_some(granted)
    }

    /// Connects, and begins to send.
    ///
    /// # Errors
    /// As [`Client::open`] for the last address, and [`Client::send_stream`].
    pub async fn send(&self, env: &EnvRef) -> Result<Leaving, Error> {
        let (client, handle) = self.connect(env).await?;
        client.send_stream(&handle, self.stream).await
    }

    /// Connects, and begins to receive.
    ///
    /// # Errors
    /// As [`Client::open`] for the last address, and [`Client::receive_stream`].
    pub async fn receive(&self, env: &EnvRef) -> Result<Arriving, Error> {
        let (client, handle) = self.connect(env).await?;
        client.receive_stream(&handle, self.stream).await
    }

    /// Tries one address after the other.
    async fn connect(&self, env: &EnvRef) -> Result<(Client, Handle), Error> {
        let mut why = Lost::Closed;
        for address in &self.addresses {
            match self.connect_to(env, *address).await {
                Ok(client) => {
                    let handle = client.present(&self.capability, &self.secret)?;
                    return Ok((client, handle));
                }
                Err(lost) => why = lost,
            }
        }
        Err(why.into())
    }

    async fn connect_to(&self, env: &EnvRef, address: SocketAddr) -> Result<Client, Lost> {
        let stream = env.timeout(CONNECT_MAX, env.connect(address)).await.map_err(|_| Lost::Handshake)??;
        let patience = Patience { handshake: HANDSHAKE_MAX, ..Patience::default() };
        let client = Client::open(env.clone(), stream, self.security, patience).await?;
        if client.drive() == self.drive { Ok(client) } else { Err(Lost::Key("it is another drive".into())) }
    }
}
