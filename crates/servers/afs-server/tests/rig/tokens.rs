//! Tokens of the real classes.

use std::sync::Arc;

use afs_auth::crypto::EncType;
use afs_auth::keys::{KeyKind, KeyRing, SharedKeys, generate};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{self, RxgkServer, RxgkToken, Variant};
use afs_auth::rxkad::{self, RxkadLimits, RxkadServer, RxkadToken};
use afs_rpc::{EnvRef, Level, Parts, Security, Terms, UnixTime};
use afs_rx::ServerSecurity;

/// A cell's keys, and tokens made with them.
pub struct Tokens {
    pub ring: KeyRing,
    env: EnvRef,
}

impl Tokens {
    /// The keys of a new cell.
    pub fn new(env: EnvRef) -> Self {
        let mut tokens = Tokens { ring: KeyRing::default(), env };
        for (kind, enctype, kvno) in [(KeyKind::RxkadKrb5, 18, 7), (KeyKind::Rxgk, 20, 3)] {
            let key = generate(kind, enctype, kvno, &tokens.env).unwrap();
            tokens.ring.add(key).unwrap();
        }
        tokens
    }

    fn after(&self, seconds: u64) -> UnixTime {
        UnixTime { secs: self.env.wall().secs + seconds, nanos: 0 }
    }

    /// The classes of a server with these keys.
    pub fn classes(&self) -> Vec<Box<dyn ServerSecurity>> {
        let (keys, names) = (SharedKeys::new(self.ring.clone()), Arc::new(LocalNames::of_cell("test.cell")));
        let limits = RxkadLimits { minimum: Level::Clear };
        let kad = RxkadServer::new(keys.clone(), names.clone(), self.env.clone(), limits);
        let gk = RxgkServer::new(Variant::OpenAfs, keys, names, self.env.clone(), Level::Clear);
        vec![Box::new(kad), Box::new(gk)]
    }

    pub fn rxkad(&self, name: &str, seconds: u64) -> RxkadToken {
        let (client, realm) = (vec![name.to_owned()], "TEST.CELL".to_owned());
        let (begins, expires) = (self.after(0), self.after(seconds));
        let minting = rxkad::Minting { client, realm, begins, expires, level: Level::Crypt };
        rxkad::mint(&self.ring, &minting, &self.env).unwrap()
    }

    pub fn rxgk(&self, name: &str, seconds: u64) -> RxgkToken {
        let (name, expires, enctype) = (name.to_owned(), self.after(seconds), EncType::DEFAULT);
        let minting = rxgk::Minting { name, level: Level::Crypt, expires, enctype, terms: Terms::default() };
        rxgk::mint(&self.ring, &minting, &self.env).unwrap()
    }

    /// The same for a client whose clock stands still, so that it does not notice the expiry of its tokens.
    pub fn standing_still(&self) -> StandingStill {
        let (now, env) = (self.env.wall(), self.env.clone());
        StandingStill(
            Parts::default().with_wall(move || now).with_random(move |out| env.random(out)).shared(),
        )
    }

    pub fn by_rxkad(&self, token: &RxkadToken) -> Security {
        Security::new(token.source(self.env.clone()))
    }

    pub fn by_rxgk(&self, token: &RxgkToken) -> Security {
        Security::new(token.source(self.env.clone()))
    }
}

/// An environment whose clock stands still.
pub struct StandingStill(EnvRef);

impl StandingStill {
    pub fn by_rxkad(&self, token: &RxkadToken) -> Security {
        Security::new(token.source(self.0.clone()))
    }

    pub fn by_rxgk(&self, token: &RxgkToken) -> Security {
        Security::new(token.source(self.0.clone()))
    }
}
