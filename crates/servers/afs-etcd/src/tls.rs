//! TLS connector for etcd's endpoints.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{ConfigError, TlsFiles};

/// The connector; `None` without an authority.
pub(crate) fn connector(files: &TlsFiles) -> Result<Option<TlsConnector>, ConfigError> {
    let Some(authority) = &files.authority else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority)? {
        roots.add(certificate).map_err(|error| wrong(authority, error))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(authority, error))?
        .with_root_certificates(roots);
    let config = match (&files.certificate, &files.key) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let own = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error))?;
            config
                .with_client_auth_cert(certificates(certificate)?, own)
                .map_err(|error| wrong(certificate, error))?
        }
        _ => return Err(ConfigError::HalfIdentity),
    };
    Ok(Some(TlsConnector::from(Arc::new(config))))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?.collect();
    let found = found.map_err(|error| wrong(path, error))?;
    if found.is_empty() { Err(wrong(path, "no certificate is in it")) } else { Ok(found) }
}

fn wrong(path: &Path, why: impl std::fmt::Display) -> ConfigError {
    ConfigError::File { path: path.to_owned(), why: why.to_string() }
}
