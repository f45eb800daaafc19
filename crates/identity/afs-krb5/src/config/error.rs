//! Errors of `krb5.conf`.

use std::io;
use std::path::PathBuf;

/// Why the Kerberos configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// More than 256 files, or files that include each other more than eight levels deep.
    #[error("{} is included by too many files", .0.display())]
    TooManyFiles(PathBuf),
    /// An invalid line.
    #[error("{}, line {line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// A KDC with an invalid address.
    #[error("krb5.conf names the KDC '{text}', but {why}")]
    Kdc {
        /// The configured value.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// A realm without a KDC.
    #[error("krb5.conf names no KDC of the realm {0}: it needs `kdc = HOST` under `{0} = {{` in [realms]")]
    NoKdc(String),
}
