//! Security of client connections: a source of security sessions for one identity.

use std::fmt;
use std::sync::Arc;

use afs_rx::{ClientSecurity, NullClient};

/// Creates the client's security session of each Rx connection opened for one identity.
pub trait SecuritySource: Send + Sync + 'static {
    /// Names class and identity. Sources with equal names share Rx connections, so equal names must mean equal
    /// rights.
    fn name(&self) -> String;

    /// Creates a session for a new Rx connection.
    fn session(&self) -> Box<dyn ClientSecurity>;
}

/// The security class and identity to call with.
#[derive(Clone, Default)]
pub struct Security(Option<Arc<dyn SecuritySource>>);

impl Security {
    /// No security: rxnull, anonymous.
    #[must_use]
    pub const fn null() -> Self {
        Self(None)
    }

    /// Security from `source`.
    #[must_use]
    pub fn new(source: Arc<dyn SecuritySource>) -> Self {
        Self(Some(source))
    }

    pub(crate) fn name(&self) -> String {
        self.0.as_ref().map(|source| source.name()).unwrap_or_default()
    }

    pub(crate) fn session(&self) -> Box<dyn ClientSecurity> {
        match &self.0 {
            Some(source) => source.session(),
            None => Box::new(NullClient),
        }
    }
}

/// Equal when class and identity are the same.
impl PartialEq for Security {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Security {}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(source) => write!(f, "Security({})", source.name()),
            None => f.write_str("Security(null)"),
        }
    }
}
