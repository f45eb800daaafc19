//! Encoding of a user's records in the store.

use std::sync::Arc;

use afs_rpc::EnvRef;
use afs_wire::error::AbortCode;
use afs_wire::ids::{UnixSeconds, ViceId};
use afs_wire::login::{Comment, KeyBlob, Message, SshKeyInfo};
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use super::known_locations::{LOCATIONS_MAX, LocationHash};
use super::stores::{LoginStore, StoreError};
use crate::crypto::Randomness;
use crate::grant::put_opaque;
use crate::ssh::UserKey;
use crate::user::UserName;

/// Version of every record.
const FORMAT: u32 = 1;
const PASSPHRASE: &str = "passphrase";
const GENERATION: &str = "generation";
/// Stored: the name stays.
const LOCATIONS: &str = "places";
/// Prefix of a key's record, before its hash in hexadecimal digits.
const SSH: &str = "ssh-";

/// Changes whenever a way to log in is removed or replaced: tokens of earlier logins are not renewed after that.
pub(super) type Generation = [u8; 16];

/// Passphrase verifier of a user.
pub(super) struct PassphraseRecord {
    pub(super) set: UnixSeconds,
    /// OPAQUE's record, of no use without the login secret.
    pub(super) opaque: Message,
}

pub(super) struct Records(pub(super) Arc<dyn LoginStore>);

impl Records {
    /// The passphrase record of a user, if it was made for the current holder of the name.
    pub(super) async fn passphrase(
        &self,
        user: &UserName,
        id: ViceId,
    ) -> Result<Option<PassphraseRecord>, AbortCode> {
        let Some(bytes) = self.get(user, PASSPHRASE).await? else { return Ok(None) };
        let body =
            |r: &mut Reader<'_>| Ok(PassphraseRecord { set: Decode::decode(r)?, opaque: Decode::decode(r)? });
        belonging_to(id, decode(&bytes, body))
    }

    pub(super) async fn set_passphrase(
        &self,
        user: &UserName,
        id: ViceId,
        record: &PassphraseRecord,
    ) -> Result<(), AbortCode> {
        let mut bytes = header(id);
        record.set.encode(&mut bytes);
        record.opaque.encode(&mut bytes);
        self.put(user, PASSPHRASE, bytes).await
    }

    pub(super) async fn remove_passphrase(&self, user: &UserName) -> Result<(), AbortCode> {
        self.0.delete(user.as_str(), PASSPHRASE).await.map_err(failed)
    }

    /// The locations of the user's logins, the latest first.
    pub(super) async fn locations(
        &self,
        user: &UserName,
        id: ViceId,
    ) -> Result<Vec<LocationHash>, AbortCode> {
        let Some(bytes) = self.get(user, LOCATIONS).await? else { return Ok(Vec::new()) };
        Ok(belonging_to(id, decode(&bytes, locations))?.unwrap_or_default())
    }

    pub(super) async fn set_locations(
        &self,
        user: &UserName,
        id: ViceId,
        locations: &[LocationHash],
    ) -> Result<(), AbortCode> {
        let mut bytes = header(id);
        put_opaque(locations.as_flattened(), &mut bytes);
        self.put(user, LOCATIONS, bytes).await
    }

    /// Whether the user has this key.
    pub(super) async fn has_key(
        &self,
        user: &UserName,
        id: ViceId,
        key: &UserKey,
    ) -> Result<bool, AbortCode> {
        let Some(bytes) = self.get(user, &kind_of(key)).await? else { return Ok(false) };
        let info = belonging_to(id, decode(&bytes, key_info))?;
        Ok(info.is_some_and(|info| info.key == *key.blob()))
    }

    pub(super) async fn add_key(
        &self,
        user: &UserName,
        id: ViceId,
        key: &UserKey,
        comment: Comment,
        added: UnixSeconds,
    ) -> Result<(), AbortCode> {
        let mut bytes = header(id);
        SshKeyInfo { key: key.blob().clone(), comment, added }.encode(&mut bytes);
        self.put(user, &kind_of(key), bytes).await
    }

    pub(super) async fn remove_key(&self, user: &UserName, key: &UserKey) -> Result<(), AbortCode> {
        self.0.delete(user.as_str(), &kind_of(key)).await.map_err(failed)
    }

    /// The user's keys.
    pub(super) async fn keys(&self, user: &UserName, id: ViceId) -> Result<Vec<SshKeyInfo>, AbortCode> {
        let mut keys = Vec::new();
        for (kind, bytes) in self.0.list(user.as_str()).await.map_err(failed)? {
            if kind.starts_with(SSH) {
                keys.extend(belonging_to(id, decode(&bytes, key_info))?);
            }
        }
        Ok(keys)
    }

    /// Removes the user's passphrase and keys.
    pub(super) async fn remove_ways(&self, user: &UserName, id: ViceId) -> Result<(), AbortCode> {
        self.remove_passphrase(user).await?;
        for info in self.keys(user, id).await? {
            let key = UserKey::from_wire(&info.key).map_err(|_| damaged())?;
            self.remove_key(user, &key).await?;
        }
        Ok(())
    }

    pub(super) async fn generation(&self, user: &UserName) -> Result<Generation, AbortCode> {
        match self.get(user, GENERATION).await? {
            None => Ok([0; 16]),
            Some(bytes) => bytes.try_into().map_err(|_| damaged()),
        }
    }

    /// Begins a new generation: no token of an earlier one is renewed.
    pub(super) async fn next_generation(&self, user: &UserName, env: &EnvRef) -> Result<(), AbortCode> {
        self.put(user, GENERATION, Randomness(env).bytes::<16>().to_vec()).await
    }

    async fn get(&self, user: &UserName, kind: &str) -> Result<Option<Vec<u8>>, AbortCode> {
        self.0.get(user.as_str(), kind).await.map_err(failed)
    }

    async fn put(&self, user: &UserName, kind: &str, record: Vec<u8>) -> Result<(), AbortCode> {
        self.0.put(user.as_str(), kind, record).await.map_err(failed)
    }
}

fn kind_of(key: &UserKey) -> String {
    key.hash().iter().fold(SSH.to_owned(), |kind, byte| kind + &format!("{byte:02x}"))
}

fn key_info(r: &mut Reader<'_>) -> Result<SshKeyInfo, DecodeError> {
    Ok(SshKeyInfo { key: KeyBlob::decode(r)?, comment: Comment::decode(r)?, added: UnixSeconds::decode(r)? })
}

fn locations(r: &mut Reader<'_>) -> Result<Vec<LocationHash>, DecodeError> {
    let hashes = r.opaque(LOCATIONS_MAX * size_of::<LocationHash>())?;
    Ok(hashes.as_chunks().0.to_vec())
}

fn header(id: ViceId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    FORMAT.encode(&mut bytes);
    id.encode(&mut bytes);
    bytes
}

/// The id in a record's header, and the rest of it.
fn decode<T>(
    bytes: &[u8],
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<(ViceId, T), AbortCode> {
    let mut reader = Reader::new(bytes);
    let read = || {
        let value = u32::decode(&mut reader)?;
        if value != FORMAT {
            return Err(DecodeError::BadValue { what: "format of a login record", value });
        }
        Ok((ViceId::decode(&mut reader)?, body(&mut reader)?))
    };
    read().map_err(|error| {
        tracing::error!("a login record cannot be read: {error}");
        AbortCode::LGNIO
    })
}

fn belonging_to<T>(id: ViceId, record: Result<(ViceId, T), AbortCode>) -> Result<Option<T>, AbortCode> {
    record.map(|(owner, value)| (owner == id).then_some(value))
}

fn damaged() -> AbortCode {
    tracing::error!("a login record cannot be read");
    AbortCode::LGNIO
}

pub(super) fn failed(error: StoreError) -> AbortCode {
    if error == StoreError::NoQuorum {
        return AbortCode::UNOQUORUM;
    }
    tracing::error!("the login records: {error}");
    AbortCode::LGNIO
}
