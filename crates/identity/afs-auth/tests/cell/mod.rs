//! Test kit: a client and a server of one small cell on a simulated network, with rxgk between them.

#![allow(dead_code)]

pub(crate) use crate::support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afs_auth::crypto::EncType;
use afs_auth::keys::{CellKey, KeyKind, KeyRing, SharedKeys};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{
    Lifetime, Minting, RxgkServer, RxgkToken, TokenContents, Variant, mint, open_token, seal_token,
};
use afs_rpc::{Credential, EnvRef, Level, Parts, Terms, UnixTime};
use afs_rx::{
    CallError, Challenge, ClientSecurity, Config, ConnId, Event, Overhead, PacketContext, PacketSecurity,
    Read, Response, SecurityError,
};
use bytes::Bytes;
use support::{CLIENT, SERVER, Weather, World, address, pattern};

pub const SERVICE: u16 = 1;
pub const NOW: u64 = 1_800_000_000;
/// Most steps of a test's simulation.
const STEPS_MAX: u32 = 2_000_000;

/// A wall clock that a test sets, and that may advance by a second at each reading.
#[derive(Clone, Default)]
pub struct Wall(Arc<(AtomicU64, AtomicU64)>);

impl Wall {
    pub fn pass(&self, seconds: u64) {
        self.0.0.fetch_add(seconds, Ordering::Relaxed);
    }

    /// From here on each reading advances the clock by this many seconds.
    pub fn tick(&self, seconds: u64) {
        self.0.1.store(seconds, Ordering::Relaxed);
    }

    fn now(&self) -> UnixTime {
        let passed = self.0.0.fetch_add(self.0.1.load(Ordering::Relaxed), Ordering::Relaxed);
        UnixTime { secs: NOW + passed, nanos: 0 }
    }

    /// This wall clock, with randomness from `seed`.
    pub fn env(&self, seed: u64) -> EnvRef {
        let (wall, dice) = (self.clone(), Mutex::new(support::Dice::new(seed)));
        let random = move |out: &mut [u8]| {
            let mut dice = dice.lock().unwrap();
            out.iter_mut().for_each(|byte| *byte = dice.below(256) as u8);
        };
        Parts::default().with_wall(move || wall.now()).with_random(random).shared()
    }
}

/// Seeded randomness, and a wall clock that stands still.
pub fn env(seed: u64) -> EnvRef {
    Wall::default().env(seed)
}

pub fn cell_key(seed: u64, kvno: u32, enctype: EncType) -> CellKey {
    let secret = enctype.generate(&env(seed));
    CellKey { kind: KeyKind::Rxgk, kvno, enctype: enctype.number(), secret }
}

pub fn ring(key: CellKey) -> KeyRing {
    let mut keys = KeyRing::default();
    keys.add(key).unwrap();
    keys
}

pub struct Cell {
    pub world: World,
    pub wall: Wall,
    pub keys: KeyRing,
    pub env: EnvRef,
    /// Key numbers that the client has sent and received.
    pub numbers: Arc<Mutex<BTreeSet<u16>>>,
    /// The clients that the server has authenticated.
    pub credentials: Vec<Credential>,
}

impl Cell {
    pub fn new(seed: u64, variant: Variant, weather: Weather) -> Self {
        Self::with(seed, variant, weather, &Config::default(), Level::Clear)
    }

    pub fn with(seed: u64, variant: Variant, weather: Weather, config: &Config, minimum: Level) -> Self {
        let (mut world, wall) = (World::new(seed, weather, config), Wall::default());
        let keys = ring(cell_key(1, 3, EncType::DEFAULT));
        let names = Arc::new(LocalNames::of_cell("example.org"));
        let env = wall.env(seed);
        let class = RxgkServer::new(variant, SharedKeys::new(keys.clone()), names, env.clone(), minimum);
        world.ends[SERVER].listen(SERVICE, vec![Box::new(class)]).unwrap();
        Self { world, wall, keys, env, numbers: Arc::default(), credentials: Vec::new() }
    }

    /// Alice's token for an hour.
    pub fn token(&self, level: Level, enctype: EncType) -> RxgkToken {
        let expires = UnixTime { secs: NOW + 3600, nanos: 0 };
        let minting = Minting { name: "alice".to_owned(), level, expires, enctype, terms: Terms::default() };
        mint(&self.keys, &minting, &self.env).unwrap()
    }

    /// The token with its contents changed by a holder of the cell's key.
    pub fn changed(
        &self,
        token: &RxgkToken,
        variant: Variant,
        change: impl FnOnce(&mut TokenContents),
    ) -> RxgkToken {
        let mut contents = open_token(token.variant, &token.sealed, &self.keys).unwrap();
        change(&mut contents);
        let sealed = seal_token(variant, &contents, self.keys.best(KeyKind::Rxgk).unwrap(), &self.env);
        RxgkToken::of_contents(variant, contents, sealed.unwrap())
    }

    pub fn with_lifetime(&self, token: &RxgkToken, seconds: u32, bytelife: u32) -> RxgkToken {
        let lifetime = Lifetime { seconds, bytelife };
        self.changed(token, token.variant, |contents| contents.lifetime = lifetime)
    }

    pub fn connect(&mut self, token: &RxgkToken) -> ConnId {
        let session = token.source(self.env.clone()).session();
        self.connect_with(session)
    }

    pub fn connect_with(&mut self, session: Box<dyn ClientSecurity>) -> ConnId {
        let spy = Box::new(Spy { session, numbers: self.numbers.clone() });
        self.world.ends[CLIENT].connect(self.world.now, address(SERVER), SERVICE, spy)
    }

    /// One call whose request and reply have these lengths; both are compared.
    pub fn call(&mut self, connection: ConnId, ask: usize, answer: usize) -> Result<(), CallError> {
        let (request, reply) = (pattern(1, 0, ask), pattern(2, 0, answer));
        let now = self.world.now;
        let call = self.world.ends[CLIENT].open_call(now, connection).unwrap();
        let (mut asking, mut answering) = (request.clone(), reply.clone());
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        let (mut served, mut is_asked, mut is_answered) = (None, false, false);
        for _ in 0..STEPS_MAX {
            let now = self.world.now;
            let [client, server] = &mut self.world.ends;
            if !is_asked {
                client.write(now, call, &mut asking).unwrap_or(0);
                is_asked = asking.is_empty() && client.finish_send(now, call).is_ok();
            }
            while let Some(event) = server.poll_event() {
                if let Event::IncomingCall { call, connection, .. } = event {
                    served = Some(call);
                    let identity = server.connection(connection).unwrap().identity.unwrap();
                    self.credentials.push(identity.downcast_ref::<Credential>().unwrap().clone());
                }
            }
            if let Some(call) = served {
                while let Ok(Read::Data(data)) = server.read(now, call, 1 << 16) {
                    asked.extend_from_slice(&data);
                }
                if asked.len() == request.len() && !is_answered {
                    server.write(now, call, &mut answering).unwrap_or(0);
                    is_answered = answering.is_empty() && server.finish_send(now, call).is_ok();
                }
            }
            while let Ok(Read::Data(data)) = client.read(now, call, 1 << 16) {
                answered.extend_from_slice(&data);
            }
            while let Some(event) = client.poll_event() {
                if let Event::Finished(finished, result) = event
                    && finished == call
                {
                    assert!(result.is_err() || (request == asked && reply == answered));
                    return result;
                }
            }
            self.world.transmit();
            let next = self.world.next().expect("the call goes on");
            self.world.advance(next);
        }
        panic!("no end in sight");
    }

    /// The code with which a call on a new connection fails.
    pub fn refusal(&mut self, token: &RxgkToken) -> i32 {
        let connection = self.connect(token);
        self.call(connection, 100, 100).expect_err("refused").code()
    }

    pub fn numbers(&self) -> BTreeSet<u16> {
        self.numbers.lock().unwrap().clone()
    }
}

/// Records the key numbers used by a client.
struct Spy {
    session: Box<dyn ClientSecurity>,
    numbers: Arc<Mutex<BTreeSet<u16>>>,
}

impl PacketSecurity for Spy {
    fn index(&self) -> u8 {
        self.session.index()
    }
    fn overhead(&self) -> Overhead {
        self.session.overhead()
    }
    fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
        let number = self.session.seal(packet, payload)?;
        self.numbers.lock().unwrap().insert(number);
        Ok(number)
    }
    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        let data = self.session.open(packet, payload)?;
        self.numbers.lock().unwrap().insert(packet.checksum);
        Ok(data)
    }
}

impl ClientSecurity for Spy {
    fn respond(&mut self, challenge: &Challenge<'_>) -> Result<Response, SecurityError> {
        self.session.respond(challenge)
    }
}
