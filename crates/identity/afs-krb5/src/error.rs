//! Errors of getting a token from Kerberos tickets.

use crate::cache::LocationError;
use crate::config::ConfigError;
use crate::principal::{NameError, Principal};
use crate::search::SearchError;
use afs_auth::rxkad::RxkadError;
use std::io;

/// Why a token could not be obtained.
#[derive(Debug, thiserror::Error)]
pub enum KerberosError {
    /// An option is not a valid name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// `krb5.conf` cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The credential cache cannot be read.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// There is no ticket for the cell.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// A thread cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    /// rxkad cannot use the ticket.
    #[error("the ticket for {service} is no token: {error}")]
    Ticket {
        /// The service.
        service: Principal,
        /// The fault.
        error: RxkadError,
    },
}
