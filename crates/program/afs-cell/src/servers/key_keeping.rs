//! The keys of this host, as the overseer service changes them: first a key is coming, then it is used.

use crate::configuration::key_store::KeyStore;
use crate::servers::security::CellSecurity;
use afs_auth::keys::{CellKey, KeyError, KeyKind, KeyRing};
use afs_login::KeyReceiver;
use afs_rpc::{BoxFuture, EnvExt, EnvRef};
use afs_server::KeyKeeper;
use afs_wire::bos::{CellKeys, CellKeysReply, HeldKey, KeyStep};
use afs_wire::error::AbortCode;
use afs_wire::login::Fixed;
use afs_wire::xdr::BoundedVec;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// The keeper of the keys of a host.
pub(super) struct KeyKeeping {
    security: CellSecurity,
    env: EnvRef,
    receiver: KeyReceiver,
    /// One step at a time.
    turn: Mutex<()>,
}

impl fmt::Debug for KeyKeeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyKeeping")
    }
}

impl KeyKeeping {
    pub(super) fn new(security: CellSecurity, env: EnvRef) -> Self {
        Self { security, receiver: KeyReceiver::new(&env), env, turn: Mutex::default() }
    }

    fn make(&self, call: &CellKeys) -> Result<CellKeysReply, AbortCode> {
        let _turn = self.turn.lock();
        let store = self.security.key_store();
        let before = store.load().map_err(|error| unreadable(&error))?;
        let mut keys = before.clone();
        self.change(&mut keys, call)?;
        if keys != before {
            self.keep(store, keys.clone())?;
        }
        let held = keys.iter().map(|key| held(key, false)).chain(keys.coming().map(|key| held(key, true)));
        Ok(CellKeysReply { share: self.receiver.share(), keys: BoundedVec::first_of(held) })
    }

    fn change(&self, keys: &mut KeyRing, call: &CellKeys) -> Result<(), AbortCode> {
        let kind = KeyKind::from_number(call.kind).ok_or(AbortCode::BZSYNTAX)?;
        let is = |key: &CellKey| key.kind == kind && key.kvno == call.number;
        match call.step {
            KeyStep::LIST => Ok(()),
            KeyStep::OFFER => self.offer(keys, &call.sealed),
            KeyStep::USE if !keys.iter().chain(keys.coming()).any(is) => Err(AbortCode::BZNOENT),
            KeyStep::USE => {
                keys.use_coming(is);
                Ok(())
            }
            KeyStep::DROP => {
                keys.drop_coming(is);
                Ok(())
            }
            KeyStep::REMOVE => remove(keys, is),
            _ => Err(AbortCode::BZSYNTAX),
        }
    }

    fn offer(&self, keys: &mut KeyRing, sealed: &[u8]) -> Result<(), AbortCode> {
        let offered = self.receiver.open(sealed).ok_or(AbortCode::BZSYNTAX)?;
        offered.iter().try_for_each(|key| keys.add_coming(key.clone())).map_err(|error| match error {
            KeyError::Twice { .. } => AbortCode::BZKEYINUSE,
            _ => AbortCode::BZSYNTAX,
        })
    }

    fn keep(&self, store: &KeyStore, keys: KeyRing) -> Result<(), AbortCode> {
        store.save(&keys).map_err(|error| unreadable(&error))?;
        tracing::info!(
            used = ?keys.iter().map(|key| (key.kind, key.kvno)).collect::<Vec<_>>(),
            coming = ?keys.coming().map(|key| (key.kind, key.kvno)).collect::<Vec<_>>(),
            "the keys of the cell changed"
        );
        self.security.keys().set(keys);
        Ok(())
    }
}

impl KeyKeeper for KeyKeeping {
    fn step(self: Arc<Self>, call: CellKeys) -> BoxFuture<'static, Result<CellKeysReply, AbortCode>> {
        Box::pin(async move {
            let env = self.env.clone();
            env.run_blocking(move || self.make(&call)).await.map_err(|_| AbortCode::BZIO)?
        })
    }
}

/// Not the last keys of rxgk, with which servers call each other.
fn remove(keys: &mut KeyRing, is: impl Fn(&CellKey) -> bool) -> Result<(), AbortCode> {
    let gone: Vec<_> =
        keys.iter().filter(|key| is(key)).map(|key| (key.kind, key.kvno, key.enctype)).collect();
    for (kind, kvno, enctype) in gone {
        keys.remove(kind, kvno, enctype);
    }
    if keys.best(KeyKind::Rxgk).is_some() { Ok(()) } else { Err(AbortCode::BZBUSY) }
}

fn held(key: &CellKey, coming: bool) -> HeldKey {
    let digest = Fixed(key.digest());
    HeldKey { kind: key.kind.number(), number: key.kvno, enctype: key.enctype, coming, digest }
}

fn unreadable(error: &crate::error::CellError) -> AbortCode {
    tracing::error!(%error, "the key files cannot be used");
    AbortCode::BZIO
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::options::ServerOptions;
    use crate::configuration::ports::Ports;
    use afs_auth::keys::generate;
    use afs_login::seal_keys;
    use afs_net::System;
    use afs_wire::ids::CellName;
    use afs_wire::xdr::ByteString;
    use std::net::Ipv4Addr;

    struct Host {
        keeping: Arc<KeyKeeping>,
        security: CellSecurity,
        env: EnvRef,
        _state: tempfile::TempDir,
    }

    impl Host {
        fn new() -> Self {
            let state = tempfile::tempdir().unwrap();
            let system = System::with_workers(1).unwrap();
            let cell = CellName::new("example.org").unwrap();
            let options = ServerOptions::alone(state.path(), cell, Ipv4Addr::LOCALHOST, Ports::from(7000));
            let security = CellSecurity::open(&system, &options).unwrap();
            let env = system.env();
            let keeping = Arc::new(KeyKeeping::new(security.clone(), env.clone()));
            Self { keeping, security, env, _state: state }
        }

        fn step(&self, step: KeyStep, number: u32, sealed: &[u8]) -> Result<CellKeysReply, AbortCode> {
            let sealed = ByteString::new(sealed).unwrap();
            self.keeping.make(&CellKeys { step, kind: KeyKind::Rxgk.number(), number, sealed })
        }

        fn offer(&self, key: &CellKey) -> Result<CellKeysReply, AbortCode> {
            let mut ring = KeyRing::default();
            ring.add(key.clone()).unwrap();
            let share = self.step(KeyStep::LIST, 0, &[]).unwrap().share.0;
            self.step(KeyStep::OFFER, 0, &seal_keys(&ring, share, &self.env).unwrap())
        }

        /// Number of the key that seals, whether another opens, and what is on disk.
        fn state(&self, number: u32) -> (u32, bool) {
            let keys = self.security.keys().get();
            assert_eq!(*keys, self.security.key_store().load().unwrap(), "memory and disk agree");
            (keys.best(KeyKind::Rxgk).unwrap().kvno, keys.find(KeyKind::Rxgk, number, 20).is_some())
        }
    }

    #[test]
    fn a_key_opens_when_it_was_offered_and_seals_when_it_is_used() {
        let host = Host::new();
        let key = generate(KeyKind::Rxgk, 20, 2, &host.env).unwrap();
        assert_eq!(host.state(2), (1, false));
        for _ in 0..2 {
            let held = host.offer(&key).unwrap();
            assert!(
                held.keys.iter().any(|held| held.coming && held.number == 2 && held.digest.0 == key.digest())
            );
            assert_eq!(host.state(2), (1, true));
        }
        let other = generate(KeyKind::Rxgk, 20, 2, &host.env).unwrap();
        assert_eq!(host.offer(&other), Err(AbortCode::BZKEYINUSE));
        for _ in 0..2 {
            host.step(KeyStep::USE, 2, &[]).unwrap();
            assert_eq!(host.state(2), (2, true));
        }
        assert_eq!(host.step(KeyStep::USE, 9, &[]), Err(AbortCode::BZNOENT));
        host.step(KeyStep::REMOVE, 1, &[]).unwrap();
        assert_eq!(host.state(1), (2, false));
        assert_eq!(host.step(KeyStep::REMOVE, 2, &[]), Err(AbortCode::BZBUSY), "the last one stays");
        assert_eq!(host.state(2), (2, true));
    }

    #[test]
    fn what_was_not_sealed_for_the_process_is_no_key_and_a_coming_one_is_forgotten() {
        let host = Host::new();
        let (key, elsewhere) = (generate(KeyKind::Rxgk, 20, 2, &host.env).unwrap(), Host::new());
        let mut ring = KeyRing::default();
        ring.add(key.clone()).unwrap();
        let share = elsewhere.step(KeyStep::LIST, 0, &[]).unwrap().share.0;
        for sealed in [seal_keys(&ring, share, &host.env).unwrap(), Vec::new(), vec![7; 100]] {
            assert_eq!(host.step(KeyStep::OFFER, 0, &sealed), Err(AbortCode::BZSYNTAX));
        }
        assert_eq!(host.state(2), (1, false));
        host.offer(&key).unwrap();
        host.step(KeyStep::DROP, 2, &[]).unwrap();
        assert_eq!(host.state(2), (1, false));
        host.step(KeyStep::DROP, 1, &[]).unwrap();
        assert_eq!(host.state(1), (1, true), "a used one stays");
    }
}
