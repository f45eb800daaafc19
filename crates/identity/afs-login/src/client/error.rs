//! Errors of the login client.

use afs_rpc::CallError;
use afs_wire::error::AbortCode;

use crate::host_key::HostKey;

/// Why a call of the login service failed. Holds no secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The user does not exist, or the passphrase or key is wrong; or the service is not this cell's.
    #[error("the user does not exist, or the passphrase or key is wrong")]
    Denied,
    /// Too many attempts have failed; attempts are limited to one in up to a minute.
    #[error("too many failed logins; wait a minute")]
    Slow,
    /// The passphrase is shorter than [`PASSPHRASE_LEN_MIN`](super::PASSPHRASE_LEN_MIN).
    #[error("a passphrase has at least {0} characters")]
    TooShort(usize),
    /// The service's host key is not the expected one.
    #[error("the login service shows the host key {0}, which is not the one known for this cell")]
    Host(HostKey),
    /// The service presented a host key that it does not have.
    #[error("the login service could not prove that it has its host key")]
    Unproven,
    /// The SSH key could not sign; the reason as text.
    #[error("the SSH key cannot sign: {0}")]
    Signer(String),
    /// There is no group of this name, or membership in it cannot be suspended.
    #[error("there is no such group, or membership in it cannot be suspended")]
    NoGroup,
    /// More groups than one change can name.
    #[error("at most 32 groups can be suspended")]
    TooManyGroups,
    /// The login itself was made without the group.
    #[error("the login was made without this group; log in again to resume membership in it")]
    Fixed,
    /// The service sent an invalid reply.
    #[error("the login service sent an invalid reply: {0}")]
    InvalidReply(&'static str),
    /// The service refused for another reason, or did not reply.
    #[error("{0}")]
    Call(CallError),
}

impl From<CallError> for LoginError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Abort(AbortCode::LGNDENIED) => Self::Denied,
            CallError::Abort(AbortCode::LGNSLOW) => Self::Slow,
            CallError::Abort(AbortCode::LGNNOGROUP) => Self::NoGroup,
            CallError::Abort(AbortCode::LGNFIXED) => Self::Fixed,
            other => Self::Call(other),
        }
    }
}
