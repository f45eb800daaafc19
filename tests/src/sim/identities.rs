//! Identities of a simulated cell: user names, the cell's key, and rxgk tokens.

use std::sync::Arc;

use afs_auth::crypto::EncType;
use afs_auth::keys::{KeyKind, KeyRing, SharedKeys, generate};
use afs_auth::names::LocalNames;
use afs_auth::rxgk::{CallbackOffer, Minting, RxgkServer, Variant, mint};
use afs_rpc::{EnvRef, Level, Security, ServerSecurity, Terms, UnixTime};
use afs_testkit::UserDirectory;
use afs_wire::ids::Uuid;

/// Name of the user at client machine `number`: `u<number>`.
#[must_use]
pub fn name_of(number: usize) -> String {
    format!("u{number}")
}

/// Protection database without groups: every `u<number>` is user 100 + number.
pub(super) fn user_directory() -> UserDirectory {
    let directory = UserDirectory::default();
    (0..USERS_MAX).for_each(|number| directory.add(&format!("u{number}"), 100 + number));
    directory
}

/// The cell's keys.
pub struct Keys(KeyRing);

impl Keys {
    /// Keys of a new cell.
    ///
    /// # Panics
    /// If none can be created.
    #[must_use]
    pub fn new(env: &EnvRef) -> Self {
        let mut ring = KeyRing::default();
        let key = generate(KeyKind::Rxgk, AES, 3, env).unwrap();
        ring.add(key).unwrap();
        Self(ring)
    }

    /// Keys read from a file.
    #[must_use]
    pub fn of(ring: KeyRing) -> Self {
        Self(ring)
    }

    /// The class under which a server of the cell offers its services, besides that without security.
    #[must_use]
    pub fn server_class(&self, env: &EnvRef) -> Box<dyn ServerSecurity> {
        let names = Arc::new(LocalNames::of_cell("sim.test"));
        let keys = SharedKeys::new(self.0.clone());
        Box::new(RxgkServer::new(Variant::OpenAfs, keys, names, env.clone(), Level::Clear))
    }

    /// A user's token as security of connections, and the class under which the user's machine is called back.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn token(
        &self,
        env: &EnvRef,
        name: String,
        level: Level,
        uuid: Uuid,
    ) -> (Security, Box<dyn ServerSecurity>) {
        let expires = UnixTime { secs: env.wall().secs + TOKEN_SECONDS, nanos: 0 };
        let minting = Minting { name, level, expires, enctype: EncType::DEFAULT, terms: Terms::default() };
        let token = mint(&self.0, &minting, env).unwrap();
        let offer = Arc::new(CallbackOffer::new(uuid, env).unwrap());
        let source = token.source_with_callback(env.clone(), offer.clone());
        let names = Arc::new(LocalNames::default());
        let class = RxgkServer::new(Variant::OpenAfs, offer.keys(), names, env.clone(), Level::Clear);
        (Security::new(source), Box::new(class))
    }
}

/// aes256-cts-hmac-sha384-192; aes128-cts-hmac-sha256-128, number 19, would do as well.
const AES: i32 = 20;
/// Number of users; a cell has fewer machines.
const USERS_MAX: i32 = 64;
/// Longer than any clock jump, in seconds.
const TOKEN_SECONDS: u64 = 10 * 365 * 86_400;
