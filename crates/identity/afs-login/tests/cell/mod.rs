//! Test kit: a cell with a login service in a small simulation.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_auth::keys::{KeyKind, KeyRing, SharedKeys, generate};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{RxgkServer, Variant, open_token};
use afs_auth::{Secret, Token};
use afs_login::client::{self, GroupChange, Login, LoginError};
use afs_login::{
    Grant, KeyMint, Lifetimes, LoginConfig, LoginSecret, LoginServer, LoginStore, Recorder, Signer,
    StoreError, User, UserKey, UserName, Users,
};
use afs_rpc::{BoxFuture, Caller, Connection, EnvRef, Level, Rx, Security, Terms, TokenGeneration, UnixTime};
use afs_sim::OneHost;
use afs_wire::error::AbortCode;
use afs_wire::ids::{CellName, ViceId};
use afs_wire::rpc::ServiceId;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::{PrivateKey, PublicKey, Signature};

/// Users of the cell: alice, bob, and root, who is an administrator.
#[derive(Default)]
pub struct Book(pub Mutex<BTreeMap<String, User>>);

/// Groups of the cell, beside those of every cell.
pub const PROJECT: ViceId = ViceId(-300);
const GROUPS: [(&str, ViceId); 2] = [("alice:project", PROJECT), ("alice:other", ViceId(-301))];

impl Users for Book {
    fn user<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<User>, StoreError>> {
        let found = self.0.lock().unwrap().get(name).copied();
        Box::pin(async move { Ok(found) })
    }

    fn holder<'a>(
        &'a self,
        name: &'a str,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Option<User>, StoreError>> {
        let found = self.0.lock().unwrap().get(name).copied().filter(|user| terms.count_in(user.tokens));
        let found = found.map(|user| User {
            administrator: user.administrator && !terms.suspended.has(ViceId::ADMINISTRATORS),
            ..user
        });
        Box::pin(async move { Ok(found) })
    }

    fn after(&self, id: ViceId) -> BoxFuture<'_, Result<Vec<(ViceId, String)>, StoreError>> {
        let mut users: Vec<_> =
            self.0.lock().unwrap().iter().map(|(name, user)| (user.id, name.clone())).collect();
        users.retain(|(other, _)| *other > id);
        users.sort();
        users.truncate(2);
        Box::pin(async move { Ok(users) })
    }

    fn revoke_tokens(&self, id: ViceId, now: UnixTime) -> BoxFuture<'_, Result<(), StoreError>> {
        for user in self.0.lock().unwrap().values_mut().filter(|user| user.id == id) {
            user.tokens = user.tokens.after(now);
        }
        Box::pin(async { Ok(()) })
    }

    fn ids_of(&self, names: Vec<String>) -> BoxFuture<'_, Result<Vec<Option<ViceId>>, StoreError>> {
        let user = |name: &str| self.0.lock().unwrap().get(name).map(|user| user.id);
        let group = |name: &str| GROUPS.iter().find(|(known, _)| *known == name).map(|(_, id)| *id);
        let id = |name: &String| user(name).or(group(name)).or(ViceId::from_well_known_name(name));
        let ids = names.iter().map(id).collect();
        Box::pin(async move { Ok(ids) })
    }

    fn names_of<'a>(&'a self, ids: &'a [ViceId]) -> BoxFuture<'a, Result<Vec<Option<String>>, StoreError>> {
        let group = |id: &ViceId| GROUPS.iter().find(|(_, known)| known == id).map(|(name, _)| *name);
        let name = move |id: &ViceId| group(id).or(id.well_known_name()).map(str::to_owned);
        Box::pin(async move { Ok(ids.iter().map(name).collect()) })
    }
}

/// Records in memory.
#[derive(Default)]
pub struct Shelf(pub Mutex<BTreeMap<(String, String), Vec<u8>>>);

impl LoginStore for Shelf {
    fn get<'a>(&'a self, user: &'a str, kind: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move { Ok(self.0.lock().unwrap().get(&(user.into(), kind.into())).cloned()) })
    }

    fn put<'a>(
        &'a self,
        user: &'a str,
        kind: &'a str,
        record: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        assert!(kind.len() <= 68 && record.len() <= 4096);
        Box::pin(async move {
            self.0.lock().unwrap().insert((user.into(), kind.into()), record);
            Ok(())
        })
    }

    fn delete<'a>(&'a self, user: &'a str, kind: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.0.lock().unwrap().remove(&(user.into(), kind.into()));
            Ok(())
        })
    }

    fn list<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<Vec<(String, Vec<u8>)>, StoreError>> {
        Box::pin(async move {
            let all = self.0.lock().unwrap();
            let of_user = all.iter().filter(|((owner, _), _)| owner == user);
            Ok(of_user.map(|((_, kind), record)| (kind.clone(), record.clone())).collect())
        })
    }
}

/// What was recorded: calls, what they were about, and their outcomes.
#[derive(Default)]
pub struct Log(pub Mutex<Vec<(&'static str, String, AbortCode)>>);

impl Recorder for Log {
    fn record(&self, _: &Caller, call: &'static str, about: &str, outcome: AbortCode) {
        self.0.lock().unwrap().push((call, about.to_owned(), outcome));
    }
}

/// An SSH key in memory.
pub struct Key(pub PrivateKey);

impl Key {
    pub fn new(seed: u8) -> Self {
        let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(&[seed; 32]));
        Self(PrivateKey::new(pair, "test").unwrap())
    }

    pub fn user_key(&self) -> UserKey {
        UserKey::new(self.0.public_key()).unwrap()
    }
}

impl Signer for Key {
    fn key(&self) -> &PublicKey {
        self.0.public_key()
    }

    fn sign(&self, data: &[u8]) -> Result<Signature, String> {
        signature::Signer::try_sign(&self.0, data).map_err(|error| error.to_string())
    }
}

pub const LIFETIMES: Lifetimes =
    Lifetimes { token: Duration::from_secs(90_000), renewable: Duration::from_secs(7 * 86_400) };

pub struct Cell {
    pub world: Arc<OneHost>,
    pub client: Rx,
    /// A client that the servers treat as the cell's owner.
    pub owner: Rx,
    pub server_at: SocketAddr,
    pub server_rx: Rx,
    keys: SharedKeys,
    pub secret: LoginSecret,
    pub book: Arc<Book>,
    pub shelf: Arc<Shelf>,
    pub log: Arc<Log>,
    pub env: EnvRef,
    pub server: Arc<LoginServer>,
}

pub fn cell(seed: u64) -> Cell {
    let world = OneHost::new(seed);
    let (server, server_at) = world.node(7002);
    let (client, _) = world.node(7102);
    let (owner, owner_at) = world.node(7103);
    server.trust(owner_at).unwrap();
    let env = world.env();
    let mut ring = KeyRing::default();
    ring.add(generate(KeyKind::Rxgk, 20, 1, &env).unwrap()).unwrap();
    let keys = SharedKeys::new(ring);
    let book = Arc::new(Book::default());
    for (name, id, administrator) in [("alice", 101, false), ("bob", 102, false), ("root", 1, true)] {
        book.0
            .lock()
            .unwrap()
            .insert(name.into(), User { id: ViceId(id), administrator, tokens: TokenGeneration(0) });
    }
    let shelf = Arc::new(Shelf::default());
    let secret = LoginSecret::generate(&env);
    let log = Arc::new(Log::default());
    let login = login_server(&world, &secret, (&shelf, &log), &book, &keys);
    offer(&server, &login, &keys, &env);
    let server_rx = server;
    Cell { world, client, owner, server_at, server_rx, keys, secret, book, shelf, log, env, server: login }
}

fn login_server(
    world: &Arc<OneHost>,
    secret: &LoginSecret,
    (shelf, log): (&Arc<Shelf>, &Arc<Log>),
    book: &Arc<Book>,
    keys: &SharedKeys,
) -> Arc<LoginServer> {
    LoginServer::new(LoginConfig {
        env: world.env(),
        cell: cell_name(),
        secret: secret.clone(),
        lifetimes: LIFETIMES,
        store: shelf.clone(),
        users: book.clone(),
        mint: Arc::new(KeyMint { keys: keys.clone(), env: world.env() }),
        recorder: log.clone(),
    })
}

fn offer(server: &Rx, login: &Arc<LoginServer>, keys: &SharedKeys, env: &EnvRef) {
    let names = Arc::new(LocalNames::of_cell("example.org"));
    let rxgk = RxgkServer::new(Variant::OpenAfs, keys.clone(), names, env.clone(), Level::Clear);
    server.listen_with(login.service(), vec![Box::new(afs_rx::NullServer), Box::new(rxgk)]).unwrap();
}

pub fn cell_name() -> CellName {
    CellName::new("example.org").unwrap()
}

pub fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

pub fn login(name: &str) -> Login {
    Login::new(cell_name(), user(name))
}

pub fn passphrase(text: &str) -> Secret {
    Secret::new(text.as_bytes().to_vec())
}

impl Cell {
    /// The login service restarts, with its records, at another port.
    pub fn restart(&mut self) {
        self.server_rx.close();
        (self.server_rx, self.server_at) = self.world.node(self.server_at.port() + 1000);
        self.server =
            login_server(&self.world, &self.secret, (&self.shelf, &self.log), &self.book, &self.keys);
        offer(&self.server_rx, &self.server, &self.keys, &self.env);
    }

    /// An anonymous connection.
    pub fn anonymous(&self) -> Connection {
        self.client.connection(self.server_at, ServiceId::LOGIN, Security::null())
    }

    /// As the cell's owner.
    pub fn as_owner(&self) -> Connection {
        self.owner.connection(self.server_at, ServiceId::LOGIN, Security::null())
    }

    /// With a token.
    pub fn with(&self, token: &Token) -> Connection {
        let source = token.source(self.env.clone());
        self.client.connection(self.server_at, ServiceId::LOGIN, Security::new(source))
    }

    pub fn register(&self, name: &str, secret: &str) {
        let (service, env) = (self.as_owner(), self.env.clone());
        let (name, secret) = (user(name), passphrase(secret));
        let set =
            async move { client::register_passphrase(&service, &cell_name(), &name, &secret, &env).await };
        self.world.run(set).unwrap();
    }

    pub fn log_in(&self, name: &str, secret: &str) -> Result<Grant, LoginError> {
        self.log_in_as(login(name), secret)
    }

    pub fn log_in_as(&self, login: Login, secret: &str) -> Result<Grant, LoginError> {
        let (service, env, secret) = (self.anonymous(), self.env.clone(), passphrase(secret));
        self.world.run(async move { client::login_with_passphrase(&service, &login, &secret, &env).await })
    }

    pub fn add_key(&self, name: &str, key: &Key) {
        let (service, name, key) = (self.as_owner(), user(name), key.user_key());
        self.world.run(async move { client::add_ssh_key(&service, &name, &key, "laptop").await }).unwrap();
    }

    pub fn log_in_with(&self, name: &str, key: Key) -> Result<Grant, LoginError> {
        let (service, env, login) = (self.anonymous(), self.env.clone(), login(name));
        let known = self.secret.host_key();
        self.world.run(async move {
            client::login_with_ssh(&service, &login, &key, |host| *host == known, &env).await
        })
    }

    pub fn renew(&self, name: &str, grant: &Grant) -> Result<Grant, LoginError> {
        let (service, env, login) = (self.with(&grant.token), self.env.clone(), login(name));
        let renewal = grant.renewal.clone();
        self.world.run(async move { client::renew(&service, &login, &renewal, &env).await })
    }

    pub fn change_groups(
        &self,
        name: &str,
        grant: &Grant,
        change: &GroupChange,
    ) -> Result<Grant, LoginError> {
        let (service, env) = (self.with(&grant.token), self.env.clone());
        let login = Login { level: grant.token.level(), ..login(name) };
        let (renewal, change) = (grant.renewal.clone(), change.clone());
        self.world.run(async move { client::change_groups(&service, &login, &renewal, &change, &env).await })
    }

    /// The groups that a token leaves out, as a server of the cell reads them.
    pub fn suspended(&self, grant: &Grant) -> Vec<ViceId> {
        let Token::Rxgk(token) = &grant.token else { panic!("a token of another class") };
        let contents = open_token(token.variant, &token.sealed, &self.keys.get()).unwrap();
        let data = contents.identities.get(1).map_or(&[][..], |left_out| &left_out.data);
        let words = data.as_chunks().0.iter().map(|word| ViceId(i32::from_be_bytes(*word)));
        words.skip(1).collect()
    }

    /// The user of a token, as a server of the cell reads it.
    pub fn holder(&self, token: &Token) -> String {
        let Token::Rxgk(token) = token else { panic!("a token of another class") };
        let contents = open_token(token.variant, &token.sealed, &self.keys.get()).unwrap();
        String::from_utf8(contents.identities[0].data.clone()).unwrap()
    }

    pub fn now(&self) -> UnixTime {
        self.env.wall()
    }
}
