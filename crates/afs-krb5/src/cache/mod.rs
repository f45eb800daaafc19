//! Credential caches: where `kinit` puts tickets.

mod credential;
mod format;
mod location;

pub use credential::{Credential, SessionKey};
pub use format::{Cache, CacheError};
pub use location::{Location, LocationError};
