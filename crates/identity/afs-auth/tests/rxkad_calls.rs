//! rxkad between a client and a server in a small simulation: who is accepted, and the errors of the others.

// The simulation and the fake service are those of afs-rpc.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::fake;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_auth::Secret;
use afs_auth::keys::{CellKey, KeyKind, KeyRing, SharedKeys, generate};
use afs_auth::names::LocalNames;
use afs_auth::rxkad::{
    Minting, RxkadLimits, RxkadServer, RxkadToken, SessionKey, TicketFormat, local_token, mint, ticket,
};
use afs_rpc::{
    CallError, Class, Connection, Credential, EnvRef, Identity, Level, Protection, Rx, Security, ServerCall,
    Service, TokenGeneration, UnixTime,
};
use afs_sim::OneHost;
use afs_wire::error::AbortCode;
use afs_wire::rpc::ServiceId;
use fake::{Fake, ask_status, fetch_pattern, store_pattern};

const DAY: u64 = 24 * 3600;

struct Cell {
    world: Arc<OneHost>,
    keys: SharedKeys,
    server_at: SocketAddr,
    client: Rx,
    callers: Arc<Mutex<Vec<Identity>>>,
}

/// Records the callers before the fake service replies.
struct Watched(Arc<dyn Service>, Arc<Mutex<Vec<Identity>>>);

impl Service for Watched {
    fn id(&self) -> ServiceId {
        self.0.id()
    }

    fn serve(self: Arc<Self>, call: ServerCall) -> afs_rpc::BoxFuture<'static, ()> {
        self.1.lock().unwrap().push(call.caller().identity.clone());
        self.0.clone().serve(call)
    }
}

impl Cell {
    fn new(seed: u64, minimum: Level) -> Self {
        let world = OneHost::new(seed);
        let ((server, server_at), (client, _)) = (world.node(7000), world.node(7001));
        let mut ring = KeyRing::default();
        ring.add(generate(KeyKind::RxkadKrb5, 18, 7, &world.env()).unwrap()).unwrap();
        let keys = SharedKeys::new(ring);
        let names = Arc::new(LocalNames::of_cell("example.org"));
        let class = RxkadServer::new(keys.clone(), names, world.env(), RxkadLimits { minimum });
        let callers = Arc::<Mutex<Vec<Identity>>>::default();
        let service = Watched(Fake::new(world.env()).service(), callers.clone());
        server.listen_with(Arc::new(service), vec![Box::new(class)]).unwrap();
        Self { world, keys, server_at, client, callers }
    }

    fn now(&self) -> u64 {
        self.world.env().wall().secs
    }

    fn env(&self) -> EnvRef {
        self.world.env()
    }

    /// Alice's token for an hour, with changes.
    fn minted(&self, change: impl FnOnce(&mut Minting)) -> RxkadToken {
        let at = |secs| UnixTime { secs, nanos: 0 };
        let (begins, expires) = (at(self.now()), at(self.now() + 3600));
        let (client, realm) = (vec!["alice".to_owned()], "EXAMPLE.ORG".to_owned());
        let mut minting = Minting { client, realm, begins, expires, level: Level::Crypt };
        change(&mut minting);
        mint(&self.keys.get(), &minting, &self.env()).unwrap()
    }

    fn connection(&self, token: &RxkadToken) -> Connection {
        let source = token.source(self.world.env());
        self.client.connection(self.server_at, ServiceId::FILE, Security::new(source))
    }

    /// One small call.
    fn try_token(&self, token: &RxkadToken) -> Result<u64, CallError> {
        let connection = self.connection(token);
        self.world.run(async move { ask_status(&connection, 42).await.map(|status| status.length) })
    }

    /// The server's abort code for this token.
    fn refusal(&self, token: &RxkadToken) -> i32 {
        let refused = self.try_token(token);
        assert!(self.callers.lock().unwrap().is_empty(), "no call got through");
        match refused {
            Err(CallError::Abort(AbortCode(code))) => code,
            other => panic!("{other:?}"),
        }
    }

    fn last_caller(&self) -> Arc<Credential> {
        match self.callers.lock().unwrap().last() {
            Some(Identity::Proven(credential)) => credential.clone(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn calls_pass_at_every_level_with_whom_and_how_proven() {
    for (seed, level) in [(1, Level::Clear), (2, Level::Auth), (3, Level::Crypt)] {
        let cell = Cell::new(seed, Level::Clear);
        let token = cell.minted(|minting| minting.level = level);
        assert_eq!(cell.try_token(&token), Ok(42));
        let caller = cell.last_caller();
        assert_eq!(caller.principal.to_string(), "alice");
        assert_eq!(caller.protection, Protection { class: Class::Rxkad, level });
        assert_eq!(caller.expires, token.expires());
        let connection = cell.connection(&token);
        cell.world.lose_one_in(20);
        let moved = cell.world.run(async move {
            (fetch_pattern(&connection, 1, 300_000).await, store_pattern(&connection, 1, 300_000).await)
        });
        assert_eq!(moved, (Ok(300_000), Ok(300_000)), "{level:?}");
    }
}

#[test]
fn the_cells_own_token_is_the_cells_key() {
    let cell = Cell::new(4, Level::Clear);
    let token = local_token(&cell.keys.get(), &cell.env(), Level::Auth).unwrap();
    assert_eq!(cell.try_token(&token), Ok(42));
    assert_eq!(cell.last_caller().principal, afs_rpc::Principal::CellKey);
    assert_eq!(local_token(&KeyRing::default(), &cell.env(), Level::Auth), None);
}

#[test]
fn a_foreign_user_comes_with_his_realm() {
    let cell = Cell::new(5, Level::Clear);
    let token = cell.minted(|minting| {
        minting.realm = "OTHER.ORG".to_owned();
        minting.client = vec!["Bob".to_owned(), "admin".to_owned()];
    });
    assert_eq!(cell.try_token(&token), Ok(42));
    assert_eq!(cell.last_caller().principal.to_string(), "bob.admin@other.org");
}

#[test]
fn a_whole_kerberos_ticket_does_as_well() {
    let cell = Cell::new(6, Level::Clear);
    let key = (0x40..0x60).collect::<Vec<u8>>();
    let part = ticket::TicketPart {
        flags: 0,
        keytype: 18,
        key: Secret::new(key.clone()),
        realm: "EXAMPLE.ORG".to_owned(),
        client: vec!["alice".to_owned()],
        authtime: cell.now() - 10,
        starttime: None,
        endtime: cell.now() + 3600,
    };
    let printed =
        ticket::make(&part, cell.keys.get().best(KeyKind::RxkadKrb5).unwrap(), &cell.env()).unwrap();
    let token = RxkadToken::from_kerberos(&whole_ticket(&printed), 18, &key, None).unwrap();
    assert_eq!(token.format(), TicketFormat::Ticket);
    assert_eq!(cell.try_token(&token), Ok(42));
    let afs_rpc::Principal::Named { terms, .. } = &cell.last_caller().principal else { panic!("a user") };
    assert_eq!(
        terms.generation,
        TokenGeneration::of_ticket(part.authtime),
        "what was obtained before a revocation does not count"
    );
}

/// `Ticket ::= [APPLICATION 1] SEQUENCE { [0] 5, [1] realm, [2] sname, [3] EncryptedData }`.
fn whole_ticket(encrypted: &[u8]) -> Vec<u8> {
    let element = |tag: u8, content: &[u8]| {
        let len = u16::try_from(content.len()).unwrap().to_be_bytes();
        let len = if content.len() < 128 { vec![len[1]] } else { [&[0x82][..], &len].concat() };
        let len = if content.len() > 127 && content.len() < 256 { vec![0x81, len[2]] } else { len };
        [&[tag][..], &len, content].concat()
    };
    let sname = element(
        0x30,
        &[element(0xa0, &[2, 1, 2]), element(0xa1, &element(0x30, &element(0x1b, b"afs")))].concat(),
    );
    let fields = [
        element(0xa0, &[2, 1, 5]),
        element(0xa1, &element(0x1b, b"EXAMPLE.ORG")),
        element(0xa2, &sname),
        element(0xa3, encrypted),
    ];
    element(0x61, &element(0x30, &fields.concat()))
}

#[test]
fn another_session_key_proves_nothing() {
    let cell = Cell::new(7, Level::Clear);
    let good = cell.minted(|_| ());
    let stolen = RxkadToken::new(good.format(), good.ticket(), SessionKey::new([9; 8]), None).unwrap();
    assert_eq!(cell.refusal(&stolen), 19_270_410);
    // A client that only replays the ticket does not share the connections of its owner.
    let name = |token: &RxkadToken| token.source(cell.world.env()).name();
    assert_ne!(name(&good), name(&stolen));
    assert_ne!(name(&good), name(&good.clone().with_level(Level::Auth)));
    assert_eq!(name(&good), name(&good.clone()));
}

#[test]
fn a_key_the_server_does_not_have_is_unknown() {
    let cell = Cell::new(8, Level::Clear);
    let token = cell.minted(|_| ());
    cell.keys.set(KeyRing::default());
    assert_eq!(cell.refusal(&token), 19_270_408);
}

#[test]
fn a_ticket_of_another_key_with_the_same_number_is_bad() {
    let cell = Cell::new(9, Level::Clear);
    let token = cell.minted(|_| ());
    let mut other = KeyRing::default();
    let secret = Secret::new(vec![1; 32]);
    other.add(CellKey { kind: KeyKind::RxkadKrb5, kvno: 7, enctype: 18, secret }).unwrap();
    cell.keys.set(other);
    assert_eq!(cell.refusal(&token), 19_270_407);
}

#[test]
fn times_that_are_no_good() {
    let refusal = |seed, begins: i64, expires: i64| {
        let cell = Cell::new(seed, Level::Clear);
        let at = |secs: i64| UnixTime { secs: cell.now().checked_add_signed(secs).unwrap(), nanos: 0 };
        let token = cell.minted(|minting| (minting.begins, minting.expires) = (at(begins), at(expires)));
        // A client without a clock learns of the expiry from the server.
        let unaware = RxkadToken::new(token.format(), token.ticket(), token.key().clone(), None).unwrap();
        cell.refusal(&unaware)
    };
    let day = DAY.cast_signed();
    assert_eq!(refusal(10, -7200, -1), 19_270_409, "expired");
    assert_eq!(refusal(11, 16 * 60, 7200), 19_270_405, "not valid yet");
    assert_eq!(refusal(12, 0, 30 * day + 1), 19_270_407, "more than thirty days");
    assert_eq!(refusal(13, 32 * day, 33 * day), 19_270_407, "far in the future");
    assert_eq!(refusal(14, 100, 100), 19_270_407, "no time at all");
}

#[test]
fn the_edges_of_good_times() {
    for (seed, begins, life) in [(15, 14 * 60, 60), (16, 0, 30 * DAY)] {
        let cell = Cell::new(seed, Level::Clear);
        let at = |secs| UnixTime { secs: cell.now() + secs, nanos: 0 };
        let token =
            cell.minted(|minting| (minting.begins, minting.expires) = (at(begins), at(begins + life)));
        assert_eq!(cell.try_token(&token), Ok(42));
    }
}

#[test]
fn a_ticket_that_expires_ends_its_connection() {
    let cell = Cell::new(17, Level::Clear);
    let token = cell.minted(|_| ());
    let unaware = RxkadToken::new(token.format(), token.ticket(), token.key().clone(), None).unwrap();
    assert_eq!(cell.try_token(&unaware), Ok(42));
    cell.world.run_for(Duration::from_secs(3500));
    assert_eq!(cell.try_token(&unaware), Ok(42), "until the last");
    cell.world.run_for(Duration::from_secs(101));
    let expired = AbortCode(19_270_409);
    assert_eq!(cell.try_token(&unaware), Err(CallError::Abort(expired)));
    assert_eq!(cell.try_token(&token), Err(CallError::GivenUp(expired)), "a client that knows does not try");
}

#[test]
fn a_level_below_the_servers_is_refused_by_the_client() {
    let cell = Cell::new(18, Level::Crypt);
    for level in [Level::Clear, Level::Auth] {
        let refused = cell.try_token(&cell.minted(|minting| minting.level = level));
        assert_eq!(refused, Err(CallError::GivenUp(AbortCode(19_270_402))));
    }
    assert_eq!(cell.try_token(&cell.minted(|_| ())), Ok(42));
}

#[test]
fn names_that_are_none_are_refused() {
    for (seed, client) in
        [(19, &["a.b"][..]), (20, &["a", "b", "c"]), (21, &["bob@other"]), (22, &["host", "x"])]
    {
        let cell = Cell::new(seed, Level::Clear);
        let client = client.iter().map(|part| (*part).to_owned()).collect();
        assert_eq!(cell.refusal(&cell.minted(|minting| minting.client = client)), 19_270_407);
    }
}

#[test]
fn a_server_that_forgot_everything_is_answered_again() {
    let cell = Cell::new(23, Level::Clear);
    let token = cell.minted(|_| ());
    assert_eq!(cell.try_token(&token), Ok(42));
    // Longer than a server keeps an unused connection.
    cell.world.run_for(Duration::from_secs(1200));
    assert_eq!(cell.try_token(&token), Ok(42));
    assert_eq!(cell.callers.lock().unwrap().len(), 2);
}
