//! TLS with the same keys and ciphers and with nothing else of the data path: what benchmarks compare it with.

use std::io;
use std::sync::Arc;

use afs_env::{ByteStream, EnvRef};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::secured::Secured;
use super::{Fingerprint, Identity, client, server};

/// The client's side.
///
/// # Errors
/// Those of the stream and of TLS.
pub async fn connect(
    env: &EnvRef,
    stream: Box<dyn ByteStream>,
    fingerprint: Fingerprint,
) -> io::Result<Box<dyn ByteStream>> {
    let addresses = (stream.local_addr(), stream.peer_addr());
    let config = client::config(env, fingerprint).map_err(io::Error::other)?;
    let tls = TlsConnector::from(Arc::new(config)).connect(client::name(addresses.1), stream).await?;
    Ok(Box::new(Secured::new(tls.into(), addresses)))
}

/// The server's side.
///
/// # Errors
/// Those of the stream and of TLS.
pub async fn accept(
    env: &EnvRef,
    stream: Box<dyn ByteStream>,
    identity: &Identity,
) -> io::Result<Box<dyn ByteStream>> {
    let addresses = (stream.local_addr(), stream.peer_addr());
    let config = server::config(env, identity).map_err(io::Error::other)?;
    let tls = TlsAcceptor::from(Arc::new(config)).accept(stream).await?;
    Ok(Box::new(Secured::new(tls.into(), addresses)))
}
