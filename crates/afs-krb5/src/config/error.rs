//! Errors of `krb5.conf`.

use std::io;
use std::path::PathBuf;

/// Why the configuration of Kerberos cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// More than 256 files, or files that include each other more than eight deep.
    #[error("{} is included by too many files", .0.display())]
    TooManyFiles(PathBuf),
    /// A line that says nothing, or nothing that is understood.
    #[error("{}, line {line}: {why}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A KDC without an address.
    #[error("krb5.conf names the KDC '{text}', but {why}")]
    Kdc {
        /// What the configuration says.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A realm without a KDC.
    #[error("krb5.conf names no KDC of the realm {0}: it needs `kdc = HOST` under `{0} = {{` in [realms]")]
    NoKdc(String),
}
