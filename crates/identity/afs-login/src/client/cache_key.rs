//! Request for the key of one's encrypted caches.

use afs_auth::Secret;
use afs_wire::login::{CacheKey, VERSION};

use super::{Ask, LoginError};

/// The key of the caches of the user whose token `service` is a connection with, at level crypt. It is the same at each call, also after
/// a new passphrase.
///
/// # Errors
/// The error of the service: `RXGKEXPIRED` in a [`LoginError::Call`] for a token that was revoked.
pub async fn cache_key(service: &impl Ask) -> Result<Secret, LoginError> {
    let reply = service.ask(&CacheKey { version: VERSION }).await?;
    Ok(Secret::new(reply.key.0.to_vec()))
}
