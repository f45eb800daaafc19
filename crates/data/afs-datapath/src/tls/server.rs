//! The drive's side of TLS, and the choice between TLS and clear.

use std::io;
use std::sync::Arc;

use afs_env::io::AsyncReadExt;
use afs_env::{ByteStream, EnvRef};
use bytes::BytesMut;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use tokio_rustls::rustls::{Error, ServerConfig, version};

use super::Identity;
use super::provider::{WallClock, provider};
use super::secured::{BUFFER, Secured};
use super::wide::Wide;

/// What a drive offers to clients. A client begins with TLS or without; one that begins with what is not offered is turned away.
#[derive(Clone, Debug)]
pub struct Offer {
    identity: Option<Identity>,
    is_clear: bool,
}

/// First byte of a TLS connection: a record with a handshake message (RFC 8446, 5.1). A clear connection begins with 0, the high
/// byte of a length.
const TLS_FIRST: u8 = 22;

impl Offer {
    /// TLS alone.
    #[must_use]
    pub fn tls(identity: Identity) -> Self {
        Self { identity: Some(identity), is_clear: false }
    }

    /// TLS, or clear to clients that begin so.
    #[must_use]
    pub fn tls_or_clear(identity: Identity) -> Self {
        Self { identity: Some(identity), is_clear: true }
    }

    /// Clear alone.
    #[must_use]
    pub fn clear() -> Self {
        Self { identity: None, is_clear: true }
    }
}

/// The stream as the client wants it protected, and what was read of it already.
pub(crate) async fn receive(
    env: &EnvRef,
    mut stream: Box<dyn ByteStream>,
    offer: &Offer,
) -> io::Result<(Box<dyn ByteStream>, BytesMut)> {
    let mut first = [0];
    stream.read_exact(&mut first).await?;
    match (&offer.identity, first[0] == TLS_FIRST) {
        (Some(identity), true) => Ok((accept(env, stream, &first, identity).await?, BytesMut::new())),
        (_, false) if offer.is_clear => Ok((stream, BytesMut::from(&first[..]))),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

async fn accept(
    env: &EnvRef,
    stream: Box<dyn ByteStream>,
    first: &[u8],
    identity: &Identity,
) -> io::Result<Box<dyn ByteStream>> {
    let addresses = (stream.local_addr(), stream.peer_addr());
    let config = config(env, identity).map_err(io::Error::other)?;
    let mut tls = TlsAcceptor::from(Arc::new(config)).accept(Wide::new(stream, first)).await?;
    tls.get_mut().1.set_buffer_limit(Some(BUFFER));
    Ok(Box::new(Secured::new(tls.into(), addresses)))
}

/// Without tickets: a connection lives long, and resumption would save one signature.
pub(super) fn config(env: &EnvRef, identity: &Identity) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_details(provider().into(), WallClock::new(env))
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity.key())));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
