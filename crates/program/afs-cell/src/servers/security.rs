//! Security of a cell's services: keys, which change while the servers run, security classes and requirements.

use crate::configuration::key_store::KeyStore;
use crate::configuration::options::{RoleName, ServerOptions};
use crate::configuration::security_file::SecurityFile;
use crate::error::CellResult;
use crate::servers::StartError;
use afs_auth::Token;
use afs_auth::crypto::EncType;
use afs_auth::keys::{KeyRing, SharedKeys};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{self, CallbackOffer, Minting, RxgkServer, Variant, mint};
use afs_auth::rxkad::{self, RxkadLimits, RxkadServer};
use afs_net::System;
use afs_rpc::{EnvRef, Level, Person, Security, SecuritySource, Terms, TokenGeneration, UnixTime};
use afs_rx::{ClientSecurity, NullClient, NullServer, ServerSecurity};
use afs_server::{Policy, Requirement, SharedPolicy};
use afs_wire::rpc::ServiceId;
use std::sync::Arc;

/// Name of a cell's first user, who is an administrator.
pub const ADMIN_NAME: &str = "admin";
/// Lifetime of a token of the mount in the servers' own process, in seconds; each connection gets a new one.
const OWNER_SECONDS: u64 = 10 * 365 * 86_400;

/// Keys, classes and requirements of a cell.
#[derive(Clone)]
pub struct CellSecurity {
    file: SecurityFile,
    store: KeyStore,
    keys: SharedKeys,
    policy: SharedPolicy,
    names: Arc<LocalNames>,
    env: EnvRef,
}

impl CellSecurity {
    /// Reads the keys, creating them in a new cell, and `security.toml`.
    ///
    /// # Errors
    /// Others may read a file, or a file is invalid.
    pub fn open(system: &Arc<System>, options: &ServerOptions) -> CellResult<Self> {
        let state = &options.directory;
        let file = SecurityFile::read(state)?;
        let env = system.env();
        let store = options.key_file.as_deref().map_or_else(|| KeyStore::of(state), KeyStore::at);
        let keys = keys(&store, options, &env)?;
        let names = LocalNames {
            cell: options.cell.to_string(),
            realms: file.realms.local.clone(),
            exceptions: file.realms.except.iter().cloned().collect(),
        };
        Ok(Self {
            store,
            keys: SharedKeys::new(keys),
            policy: SharedPolicy::new(policy(&file)),
            names: Arc::new(names),
            env,
            file,
        })
    }

    /// The file as it was at the start.
    #[must_use]
    pub fn file(&self) -> &SecurityFile {
        &self.file
    }

    /// The files of the keys.
    #[must_use]
    pub fn key_store(&self) -> &KeyStore {
        &self.store
    }

    /// The cell's keys.
    #[must_use]
    pub fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// Names of the cell and of its realms, which may follow the `@` after a user's name.
    #[must_use]
    pub fn local_names(&self) -> Vec<String> {
        [self.names.cell.clone()].into_iter().chain(self.names.realms.iter().cloned()).collect()
    }

    /// Requirements on connections.
    #[must_use]
    pub fn policy(&self) -> &SharedPolicy {
        &self.policy
    }

    /// Security classes of every service. A class without a key refuses connections by itself.
    #[must_use]
    pub fn classes(&self) -> Vec<Box<dyn ServerSecurity>> {
        let mut classes: Vec<Box<dyn ServerSecurity>> = Vec::with_capacity(4);
        if self.file.connections.anonymous {
            classes.push(Box::new(NullServer));
        }
        if self.file.connections.rxkad {
            let (keys, names, env) = (self.keys.clone(), self.names.clone(), self.env.clone());
            classes.push(Box::new(RxkadServer::new(keys, names, env, RxkadLimits::default())));
        }
        for variant in [Variant::OpenAfs, Variant::Yfs] {
            let (keys, names, env) = (self.keys.clone(), self.names.clone(), self.env.clone());
            classes.push(Box::new(RxgkServer::new(variant, keys, names, env, Level::Clear)));
        }
        classes
    }

    /// Security of the calls of a server of the cell: in the name of the cell, encrypted.
    #[must_use]
    pub fn of_servers(&self) -> Security {
        self.of_cell(None)
    }

    /// As [`CellSecurity::of_servers`], for a person who acts through the state directory.
    #[must_use]
    pub fn of_person(&self, person: Person) -> Security {
        self.of_cell(Some(person))
    }

    fn of_cell(&self, person: Option<Person>) -> Security {
        let (keys, env) = (self.keys.clone(), self.env.clone());
        Security::new(Arc::new(CellSource { keys, env, person }))
    }

    /// Security of the mount in the servers' own process: the cell's first user, called back with the keys offered. The
    /// level is that which the strictest volume requires, and at least `auth`: an Rx connection is identified by
    /// numbers that others can know, so each packet has to prove that its sender has the key.
    #[must_use]
    pub fn owner(&self, callback: Arc<CallbackOffer>) -> Security {
        let strictest = self.file.volumes.values().copied().chain([self.file.connections.minimum]).max();
        let level = match strictest.unwrap_or_default() {
            Requirement::None | Requirement::Clear | Requirement::Auth | Requirement::RxgkAuth => Level::Auth,
            Requirement::Crypt | Requirement::RxgkCrypt => Level::Crypt,
        };
        Security::new(Arc::new(OwnerSource {
            keys: self.keys.clone(),
            env: self.env.clone(),
            level,
            callback,
        }))
    }
}

fn policy(file: &SecurityFile) -> Policy {
    let of_files = Policy::default().of_service(ServiceId::FILE, file.connections.minimum);
    file.volumes.iter().fold(of_files, |policy, (name, required)| policy.of_volume(name, *required))
}

/// Keys of the cell: created where its databases are, and copied to other hosts.
fn keys(store: &KeyStore, options: &ServerOptions, env: &EnvRef) -> CellResult<KeyRing> {
    if options.roles.has(RoleName::Database) && options.key_file.is_none() {
        return store.ensure(options.rxkad, env);
    }
    let keys = store.load()?;
    if keys.is_empty() {
        return Err(StartError::NoKeys(store.path().to_owned()).into());
    }
    Ok(keys)
}

/// Source of tokens in the name of the cell itself, a new one for each connection, of the strongest class that has a
/// key.
struct CellSource {
    keys: SharedKeys,
    env: EnvRef,
    /// Whom it acts for; none in the calls of a server.
    person: Option<Person>,
}

impl CellSource {
    fn token(&self) -> Option<Token> {
        let keys = self.keys.get();
        rxgk::local_token(&keys, Variant::OpenAfs, Level::Crypt, &self.env)
            .map(Token::Rxgk)
            .or_else(|| rxkad::local_token(&keys, &self.env, Level::Crypt).map(Token::Rxkad))
    }
}

impl SecuritySource for CellSource {
    fn name(&self) -> String {
        self.person.as_ref().map_or_else(|| "cell".to_owned(), |person| format!("cell for {person}"))
    }

    /// Without a usable key, an unauthenticated session.
    fn session(&self) -> Box<dyn ClientSecurity> {
        let source = self.token().map(|token| match &self.person {
            Some(person) => token.source_for(self.env.clone(), person.clone()),
            None => token.source(self.env.clone()),
        });
        source.map_or_else(|| Box::new(NullClient) as Box<dyn ClientSecurity>, |source| source.session())
    }
}

/// Source of tokens of the first user, a new one for each connection, so that keys may change and no token is renewed.
struct OwnerSource {
    keys: SharedKeys,
    env: EnvRef,
    level: Level,
    callback: Arc<CallbackOffer>,
}

impl OwnerSource {
    fn token_session(&self, keys: &KeyRing) -> Option<Box<dyn ClientSecurity>> {
        let now = self.env.wall();
        let minting = Minting {
            name: ADMIN_NAME.to_owned(),
            level: self.level,
            expires: UnixTime { secs: now.secs + OWNER_SECONDS, nanos: now.nanos },
            enctype: EncType::DEFAULT,
            terms: Terms { generation: TokenGeneration::OF_KEY, ..Terms::default() },
        };
        let token = mint(keys, &minting, &self.env).ok()?;
        Some(token.source_with_callback(self.env.clone(), self.callback.clone()).session())
    }
}

impl SecuritySource for OwnerSource {
    fn name(&self) -> String {
        "owner".to_owned()
    }

    /// Without a key, which every cell has, an unauthenticated session.
    fn session(&self) -> Box<dyn ClientSecurity> {
        self.token_session(&self.keys.get()).unwrap_or_else(|| Box::new(NullClient))
    }
}
