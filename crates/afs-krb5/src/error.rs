//! Errors of making a token from Kerberos tickets.

use crate::cache::LocationError;
use crate::config::ConfigError;
use crate::principal::{NameError, Principal};
use crate::search::SearchError;
use afs_auth::rxkad::RxkadError;
use std::io;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum KerberosError {
    /// An option is no name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// `krb5.conf` cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no credential cache.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// There is no ticket for the cell.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The system starts no thread.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    /// A ticket that rxkad cannot use.
    #[error("the ticket for {service} is no token: {error}")]
    Ticket {
        /// The service.
        service: Principal,
        /// Why.
        error: RxkadError,
    },
}
