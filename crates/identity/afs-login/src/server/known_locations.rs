//! Known locations: hashed addresses of a user's earlier logins, kept with the user's records.

use std::net::IpAddr;

use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;

use super::LoginServer;
use super::rate_limit::location;
use crate::user::UserName;

/// Locations remembered for one user; the oldest is dropped.
pub(super) const LOCATIONS_MAX: usize = 16;

/// Stored form of a location: a keyed hash, so that the records do not reveal where users are.
pub(super) type LocationHash = [u8; 16];

impl LoginServer {
    /// Whether the user has logged in from this address before.
    pub(super) async fn is_known_location(&self, user: &UserName, source: IpAddr) -> Result<bool, AbortCode> {
        let Some(known) = self.users.user(user.as_str()).await.map_err(super::records::failed)? else {
            return Ok(false);
        };
        self.has_been_at(user, known.id, source).await
    }

    /// Whether the user has logged in from this address, of the latest [`LOCATIONS_MAX`].
    pub(super) async fn has_been_at(
        &self,
        user: &UserName,
        id: ViceId,
        source: IpAddr,
    ) -> Result<bool, AbortCode> {
        let locations = self.records.locations(user, id).await?;
        Ok(locations.contains(&self.secret.location_hash(user, &location(source))))
    }

    /// Remembers the address of a login. A failed write does not fail the login.
    pub(super) async fn remember_location(&self, user: &UserName, source: IpAddr) {
        if let Err(code) = self.add_location(user, source).await {
            tracing::warn!(%user, "the place of a login is not remembered: {code}");
        }
    }

    async fn add_location(&self, user: &UserName, source: IpAddr) -> Result<(), AbortCode> {
        let Some(known) = self.users.user(user.as_str()).await.map_err(super::records::failed)? else {
            return Ok(());
        };
        let hash = self.secret.location_hash(user, &location(source));
        let mut locations = self.records.locations(user, known.id).await?;
        if locations.contains(&hash) {
            return Ok(());
        }
        locations.truncate(LOCATIONS_MAX - 1);
        locations.insert(0, hash);
        self.records.set_locations(user, known.id, &locations).await
    }
}
