//! The client's side of TLS: a verifier that accepts one key.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use afs_env::{ByteStream, EnvRef};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme, version,
};

use super::Fingerprint;
use super::provider::{WallClock, provider};
use super::secured::{BUFFER, Secured};
use super::wide::Wide;

/// How a client protects a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Security {
    /// Not at all. Everybody on the way can read and change bytes.
    Clear,
    /// TLS 1.3 with a drive that has the key with this fingerprint, and no other.
    Tls(Fingerprint),
}

/// The stream as `security` protects it.
pub(crate) async fn secure(
    env: &EnvRef,
    stream: Box<dyn ByteStream>,
    security: Security,
) -> io::Result<Box<dyn ByteStream>> {
    let fingerprint = match security {
        Security::Clear => return Ok(stream),
        Security::Tls(fingerprint) => fingerprint,
    };
    let addresses = (stream.local_addr(), stream.peer_addr());
    let config = config(env, fingerprint).map_err(io::Error::other)?;
    let wide = Wide::new(stream, &[]);
    let mut tls = TlsConnector::from(Arc::new(config)).connect(name(addresses.1), wide).await?;
    tls.get_mut().1.set_buffer_limit(Some(BUFFER));
    Ok(Box::new(Secured::new(tls.into(), addresses)))
}

/// The library wants a name. An address is not sent as one (RFC 6066, 3), and nothing is compared with it.
pub(super) fn name(peer: SocketAddr) -> ServerName<'static> {
    ServerName::IpAddress(peer.ip().into())
}

pub(super) fn config(env: &EnvRef, fingerprint: Fingerprint) -> Result<ClientConfig, Error> {
    let provider = provider();
    let algorithms = provider.signature_verification_algorithms;
    let mut config = ClientConfig::builder_with_details(provider.into(), WallClock::new(env))
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { fingerprint, algorithms }))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

/// Accepts the raw public key with one fingerprint, and nothing else.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if Fingerprint::of(end_entity) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(cert.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
