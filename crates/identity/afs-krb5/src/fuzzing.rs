//! Entry point of the fuzz target: any bytes as replies of a KDC, credential caches and `krb5.conf` must not cause a
//! panic. `fuzz/` calls it with inputs of libFuzzer, the test here with seeded ones.

use crate::cache::{Cache, Credential, Location};
use crate::config::{KdcAddress, Profile};
use crate::exchange::Exchange;
use crate::principal::Principal;
use crate::samples::{AFS, CACHE, ISSUED, REFUSAL, REPLY, TICKET_GRANTING};
use crate::{name_in, token};
use afs_rpc::{EnvRef, Parts, UnixTime};
use afs_wire::fuzzing::changed;
use afs_wire::ids::CellName;

const NOW: UnixTime = UnixTime { secs: ISSUED + 60, nanos: 0 };

/// Replies of a KDC, credential caches and `krb5.conf`. The first byte selects.
pub fn kerberos(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    match choice % 3 {
        0 => answers(rest),
        1 => caches(rest),
        _ => configurations(rest),
    }
}

/// Replies of a KDC: the bytes themselves, changed replies, and a reply with its encrypted part changed.
fn answers(bytes: &[u8]) {
    let Some(granting) = granting() else { return };
    let Ok(service) = Principal::parse(AFS, "") else { return };
    let exchange = Exchange::new(&granting, &service, &env());
    let sealed = exchange.resealed(REPLY, |plain| changed(plain, bytes), &env());
    for answer in [bytes.to_vec(), changed(REPLY, bytes), changed(REFUSAL, bytes), sealed] {
        match exchange.reply(&answer) {
            Ok(credential) => drop(token(&credential)),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Credential caches: the bytes themselves, and a valid cache with changes.
fn caches(bytes: &[u8]) {
    for file in [bytes.to_vec(), changed(CACHE, bytes)] {
        let Ok(cache) = Cache::decode(&file) else { continue };
        if let Ok(cell) = CellName::new("example.org") {
            let _ = name_in(&cell, &cache.owner);
        }
        for credential in &cache.credentials {
            let _ = token(credential);
            if let Ok(request) = Exchange::new(credential, &cache.owner, &env()).request(NOW, &env()) {
                assert!(!request.is_empty());
            }
        }
    }
}

/// `krb5.conf` without included files, and the values in it.
fn configurations(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let profile = Profile::of_text(text);
    for name in text.lines().take(4) {
        let _ = (profile.realm_of(name), profile.kdcs(name).is_ok());
        let _ = (Location::parse(name).is_ok(), KdcAddress::parse(name).is_ok());
        let Ok(principal) = Principal::parse(name, "REALM") else { continue };
        let shown = principal.to_string();
        assert!(!shown.contains(char::is_control));
        if !name.contains(char::is_control) {
            assert_eq!(Principal::parse(&shown, ""), Ok(principal));
        }
    }
}

fn granting() -> Option<Credential> {
    let server = Principal::parse(TICKET_GRANTING, "").ok()?;
    Cache::decode(CACHE).ok()?.find(&server, NOW).cloned()
}

fn env() -> EnvRef {
    Parts::default().with_random(|out| out.fill(7)).shared()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), first in 0..8_u8) {
            kerberos(&[&[first][..], &bytes].concat());
        }
    }
}
