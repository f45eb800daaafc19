//! Credential caches: the files in which `kinit` stores tickets.

mod credential;
mod format;
mod location;

pub use credential::{Credential, SessionKey};
pub use format::{Cache, CacheError};
pub use location::{Location, LocationError};
