//! Known locations: hashed addresses of a user's earlier passphrase logins, kept with the user's records.

use std::net::IpAddr;

use afs_wire::error::AbortCode;

use super::LoginServer;
use super::slowdown::place;
use crate::user::UserName;

/// Locations remembered for one user; the oldest is dropped.
pub(super) const PLACES_MAX: usize = 16;

/// Stored form of a location: a keyed hash, so that the records do not reveal where users are.
pub(super) type PlaceMark = [u8; 16];

impl LoginServer {
    /// Whether the user has logged in from this address before.
    pub(super) async fn is_known_place(&self, user: &UserName, source: IpAddr) -> Result<bool, AbortCode> {
        let Some(known) = self.users.user(user.as_str()).await.map_err(super::records::failed)? else {
            return Ok(false);
        };
        let places = self.records.places(user, known.id).await?;
        Ok(places.contains(&self.secret.place_mark(user, &place(source))))
    }

    /// Remembers the address of a login. A failed write does not fail the login.
    pub(super) async fn remember_place(&self, user: &UserName, source: IpAddr) {
        if let Err(code) = self.add_place(user, source).await {
            tracing::warn!(%user, "the place of a login is not remembered: {code}");
        }
    }

    async fn add_place(&self, user: &UserName, source: IpAddr) -> Result<(), AbortCode> {
        let Some(known) = self.users.user(user.as_str()).await.map_err(super::records::failed)? else {
            return Ok(());
        };
        let mark = self.secret.place_mark(user, &place(source));
        let mut places = self.records.places(user, known.id).await?;
        if places.contains(&mark) {
            return Ok(());
        }
        places.truncate(PLACES_MAX - 1);
        places.insert(0, mark);
        self.records.set_places(user, known.id, &places).await
    }
}
