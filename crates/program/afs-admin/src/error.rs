//! Error of an operation: what was being done, to which volume, at which server, and what to do next.

use std::fmt;
use std::net::Ipv4Addr;

use afs_rpc::CallError;
use afs_wire::error::AbortCode;

use crate::journal::JournalError;

/// The result of an operation.
pub type AdminResult<T = ()> = Result<T, AdminError>;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminError {
    /// What was being done, with the volume's name or id.
    pub doing: String,
    /// The cause.
    pub cause: Cause,
    /// Advice for the user; a sentence without a full stop.
    pub hint: Option<String>,
}

/// The cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A call to a server failed.
    Call {
        /// The server; `None` for the location service.
        server: Option<Ipv4Addr>,
        /// The error of the call.
        error: CallError,
    },
    /// The request cannot be carried out in the present state: nothing was changed.
    Refused(String),
    /// The work was started and cannot continue.
    Failed(String),
    /// The journal cannot be written.
    Journal(Box<JournalError>),
}

impl AdminError {
    /// A request that cannot be carried out.
    pub fn refused(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self { doing: doing.into(), cause: Cause::Refused(why.into()), hint: None }
    }

    /// Work that cannot continue.
    pub fn failed(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self { doing: doing.into(), cause: Cause::Failed(why.into()), hint: None }
    }

    /// A call failed.
    pub(crate) fn call(doing: impl Into<String>, server: Option<Ipv4Addr>, error: CallError) -> Self {
        Self { doing: doing.into(), cause: Cause::Call { server, error }, hint: None }
    }

    /// The same with advice. Existing advice stays.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert(hint.into());
        self
    }

    /// The code with which a server refused, if one did.
    #[must_use]
    pub fn code(&self) -> Option<AbortCode> {
        match &self.cause {
            Cause::Call { error, .. } => error.abort_code(),
            _ => None,
        }
    }

    /// Whether the request itself was wrong, so that the same one cannot succeed later.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self.cause, Cause::Refused(_))
    }
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.doing)?;
        match &self.cause {
            Cause::Call { server: Some(server), error: CallError::Abort(code) } => {
                write!(f, "server {server} answered {code}")?;
            }
            Cause::Call { server: Some(server), error } => write!(f, "server {server}: {error}")?,
            Cause::Call { server: None, error } => write!(f, "the location service: {error}")?,
            Cause::Refused(why) | Cause::Failed(why) => f.write_str(why)?,
            Cause::Journal(error) => write!(f, "the journal of operations: {error}")?,
        }
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AdminError {}
