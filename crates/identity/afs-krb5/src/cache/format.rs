//! Decoder of credential cache files. The format is that of MIT's "Credential cache file format" document
//! (<https://web.mit.edu/kerberos/krb5-latest/doc/formats/ccache_file_format.html>), versions 3 and 4.

use super::{Credential, SessionKey};
use crate::principal::Principal;
use afs_auth::Secret;
use afs_rpc::UnixTime;
use afs_wire::xdr::{DecodeError, Reader};

/// Contents of a credential cache: its owner and the owner's tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The user who ran `kinit`.
    pub owner: Principal,
    /// The tickets in the order of the file, including expired ones.
    pub credentials: Vec<Credential>,
}

/// Why a file is not a valid credential cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Unknown version.
    #[error("it is no credential cache of version 3 or 4")]
    Version,
    /// The file ends early, or the length of an item exceeds its bound.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A name is not valid UTF-8.
    #[error("a name in it is not UTF-8")]
    Name,
}

/// Most tickets read from a file.
const CREDENTIALS_MAX: usize = 4096;
/// Longest component or realm, in bytes.
const NAME_MAX: usize = 1024;
/// Longest session key, in bytes.
const KEY_MAX: usize = 64;
/// Most addresses, or elements of authorization data, of a ticket.
const LIST_MAX: usize = 1024;
/// First component or realm of entries in which the Kerberos library keeps its own settings, and which are not tickets.
const NOTE: &str = "X-CACHECONF:";

impl Cache {
    /// Decodes a whole file.
    ///
    /// # Errors
    /// [`CacheError`]. A file that is damaged anywhere gives nothing.
    pub fn decode(bytes: &[u8]) -> Result<Self, CacheError> {
        let mut reader = Reader::new(bytes);
        let version = match reader.array::<2>()? {
            [5, version @ (3 | 4)] => *version,
            _ => return Err(CacheError::Version),
        };
        if version == 4 {
            let header = usize::from(half(&mut reader)?);
            reader.raw(header)?;
        }
        let owner = principal(&mut reader)?;
        let mut credentials = Vec::new();
        while reader.remaining() > 0 {
            if credentials.len() == CREDENTIALS_MAX {
                return Err(DecodeError::TooLong { limit: CREDENTIALS_MAX, got: CREDENTIALS_MAX + 1 }.into());
            }
            let credential = credential(&mut reader, version)?;
            if credential.server.realm != NOTE {
                credentials.push(credential);
            }
        }
        Ok(Self { owner, credentials })
    }

    /// The valid ticket of the owner for `server` that expires last.
    pub fn find(&self, server: &Principal, now: UnixTime) -> Option<&Credential> {
        let fits = |c: &&Credential| c.server == *server && c.client == self.owner && c.is_good_at(now);
        self.credentials.iter().filter(fits).max_by_key(|c| c.ends)
    }
}

fn credential(reader: &mut Reader<'_>, version: u8) -> Result<Credential, CacheError> {
    let (client, server) = (principal(reader)?, principal(reader)?);
    let key = session_key(reader, version)?;
    let (authenticated, starts, ends, _renewable) =
        (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
    reader.array::<1>()?; // whether the key is from a user-to-user ticket
    reader.u32()?; // ticket flags
    typed_list(reader)?; // addresses
    typed_list(reader)?; // authorization data
    let ticket = data(reader, Credential::TICKET_MAX)?.to_vec();
    data(reader, Credential::TICKET_MAX)?; // second ticket
    // A ticket without a start is valid from the time of authentication.
    let starts = if starts == 0 { authenticated } else { starts };
    Ok(Credential { client, server, key, starts: time(starts), ends: time(ends), ticket })
}

fn principal(reader: &mut Reader<'_>) -> Result<Principal, CacheError> {
    let _name_type = reader.u32()?;
    let count = count(reader, Principal::COMPONENTS_MAX)?;
    let realm = text(reader)?;
    let components = (0..count).map(|_| text(reader)).collect::<Result<_, _>>()?;
    Ok(Principal { components, realm })
}

fn session_key(reader: &mut Reader<'_>, version: u8) -> Result<SessionKey, DecodeError> {
    let enctype = i32::from(half(reader)?.cast_signed());
    if version == 3 {
        half(reader)?; // the same again
    }
    let secret = Secret::new(data(reader, KEY_MAX)?.to_vec());
    Ok(SessionKey { enctype, secret })
}

fn typed_list(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    for _ in 0..count(reader, LIST_MAX)? {
        half(reader)?;
        data(reader, Credential::TICKET_MAX)?;
    }
    Ok(())
}

fn text(reader: &mut Reader<'_>) -> Result<String, CacheError> {
    let bytes = data(reader, NAME_MAX)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| CacheError::Name)
}

fn data<'a>(reader: &mut Reader<'a>, limit: usize) -> Result<&'a [u8], DecodeError> {
    let len = count(reader, limit)?;
    reader.raw(len)
}

fn count(reader: &mut Reader<'_>, limit: usize) -> Result<usize, DecodeError> {
    let got = reader.u32()? as usize;
    if got > limit { Err(DecodeError::TooLong { limit, got }) } else { Ok(got) }
}

fn half(reader: &mut Reader<'_>) -> Result<u16, DecodeError> {
    reader.array().map(|bytes| u16::from_be_bytes(*bytes))
}

fn time(secs: u32) -> UnixTime {
    UnixTime { secs: u64::from(secs), nanos: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{AFS, ALICE, CACHE, ISSUED, TICKET_GRANTING};
    use proptest::prelude::*;

    #[test]
    fn a_cache_with_a_ticket_of_kinit_and_a_service_ticket_is_decoded() {
        let cache = Cache::decode(CACHE).unwrap();
        assert_eq!(cache.owner.to_string(), ALICE);
        let servers: Vec<String> = cache.credentials.iter().map(|c| c.server.to_string()).collect();
        assert_eq!(servers, [TICKET_GRANTING, AFS]);
        for credential in &cache.credentials {
            assert_eq!(credential.client, cache.owner);
            assert_eq!((credential.key.enctype, credential.key.secret.expose().len()), (18, 32));
            assert_eq!(credential.starts.secs, ISSUED);
            assert_eq!(credential.ends.secs, ISSUED + 24 * 3600);
            assert_eq!(credential.ticket.first(), Some(&0x61));
        }
    }

    #[test]
    fn only_what_is_still_good_is_found() {
        let cache = Cache::decode(CACHE).unwrap();
        let afs = Principal::parse(AFS, "").unwrap();
        let at = |secs| UnixTime { secs, nanos: 0 };
        assert!(cache.find(&afs, at(ISSUED)).is_some());
        assert!(cache.find(&afs, at(ISSUED + 24 * 3600 - 10)).is_none());
        assert!(cache.find(&Principal::new(&["afs"], "KERB.TEST"), at(ISSUED)).is_none());
    }

    #[test]
    fn a_file_cut_anywhere_gives_less_or_an_error() {
        let whole = Cache::decode(CACHE).unwrap();
        for len in 0..CACHE.len() {
            if let Ok(part) = Cache::decode(&CACHE[..len]) {
                assert!(part.credentials.len() < whole.credentials.len(), "{len}");
            }
        }
    }

    #[test]
    fn lengths_are_checked_before_memory_is_taken() {
        let mut bytes = CACHE.to_vec();
        bytes[0x18..0x1c].copy_from_slice(&[0xff; 4]);
        assert!(matches!(Cache::decode(&bytes), Err(CacheError::Decode(DecodeError::TooLong { .. }))));
        assert_eq!(Cache::decode(&[5, 2, 0, 0]), Err(CacheError::Version));
    }

    proptest! {
        #[test]
        fn garbage_is_an_error_or_a_cache(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Cache::decode(&bytes);
        }

        #[test]
        fn damage_does_not_panic(at in 0..CACHE.len(), byte in any::<u8>()) {
            let mut bytes = CACHE.to_vec();
            bytes[at] = byte;
            let _ = Cache::decode(&bytes);
        }
    }
}
