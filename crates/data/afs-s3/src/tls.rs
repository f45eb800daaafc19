//! TLS connector for the store's endpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::ConfigError;

/// Where systems keep the certificates of public authorities: Debian, Fedora, Alpine.
const OF_SYSTEM: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The connector, which accepts the certificates of these authorities, or of the system's.
pub(crate) fn connector(authority: Option<&Path>) -> Result<TlsConnector, ConfigError> {
    let of_system = || OF_SYSTEM.iter().map(PathBuf::from).find(|path| path.exists());
    let path = authority.map(Path::to_owned).or_else(of_system).ok_or(ConfigError::NoAuthority)?;
    let wrong = |why: String| ConfigError::File { path: path.clone(), why };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(&path).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        // Of the system's, those that are not understood are passed over.
        let added = roots.add(certificate);
        added.or_else(|error| if authority.is_none() { Ok(()) } else { Err(wrong(error.to_string())) })?;
    }
    if roots.is_empty() {
        return Err(wrong("no certificate is in it".into()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}
