//! Logins with a man in the middle, who tries each attack on each message.

mod connection;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use afs_auth::Token;
use afs_login::client::{self, LoginError};
use afs_login::{Grant, HostKey};
use afs_rpc::{CallError, Connection};
use afs_sim::SimRng;
use afs_wire::error::AbortCode;

use crate::cell::{Cell, Key, cell, login, passphrase};
pub use connection::{Attack, Middle, Tape};

/// The ways to get a token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Method {
    Passphrase,
    Key,
    Renewal,
}

const SECRETS: [(&str, &str, u8); 2] = [("alice", "correct horse", 1), ("bob", "battery staple", 2)];

/// Alice and Bob have logged in, and the man in the middle has heard it.
struct Scene {
    cell: Cell,
    tape: Tape,
    grants: BTreeMap<&'static str, Grant>,
}

impl Scene {
    fn new(seed: u64, method: Method) -> Scene {
        let (cell, tape) = (cell(seed), Tape::default());
        for (name, secret, key) in SECRETS {
            if method == Method::Passphrase {
                cell.register(name, secret);
            }
            cell.add_key(name, &Key::new(key));
        }
        let grants = SECRETS.map(|(name, _, key)| (name, cell.log_in_with(name, Key::new(key)).unwrap()));
        let scene = Scene { cell, tape, grants: grants.into() };
        // Bob is the first on the tape: what is exchanged is of another user, if Alice is attacked.
        for name in ["bob", "alice"] {
            let middle = Middle::listening(scene.connection(method, name), &scene.tape);
            scene.get(method, name, middle).unwrap();
        }
        scene
    }

    fn connection(&self, method: Method, name: &str) -> Connection {
        match method {
            Method::Renewal => self.cell.with(&self.grants[name].token),
            Method::Passphrase | Method::Key => self.cell.anonymous(),
        }
    }

    fn get(&self, method: Method, name: &'static str, middle: Middle) -> Result<Grant, LoginError> {
        let (_, secret, key) = SECRETS.into_iter().find(|(known, ..)| *known == name).unwrap();
        let (env, known) = (self.cell.env.clone(), self.cell.secret.host_key());
        let renewal = self.grants[name].renewal.clone();
        self.cell.world.run(async move {
            match method {
                Method::Passphrase => {
                    client::login_with_passphrase(&middle, &login(name), &passphrase(secret), &env).await
                }
                Method::Key => {
                    let trusted = |host: &HostKey| *host == known;
                    client::login_with_ssh(&middle, &login(name), &Key::new(key), trusted, &env).await
                }
                Method::Renewal => client::renew(&middle, &login(name), &renewal, &env).await,
            }
        })
    }

    /// A login under an attack. Whether the attack changed anything.
    fn attacked(&self, method: Method, name: &'static str, message: usize, attack: Attack) -> bool {
        let middle = Middle::attacking(self.connection(method, name), &self.tape, message, attack);
        let changed = middle.changed.clone();
        let outcome = self.get(method, name, middle);
        let changed = changed.load(Ordering::SeqCst);
        let what = format!("{method:?} of {name}, message {message}: {attack:?}: {outcome:?}");
        match outcome {
            Ok(grant) => {
                assert!(!changed, "{what}");
                assert_eq!(self.cell.holder(&grant.token), name, "{what}");
                self.is_secret(&grant.token);
            }
            Err(error) => assert!(!attack.is_harmless() && is_clear(&error), "{what}"),
        }
        changed
    }

    /// Nothing of a token is in any message, nor is it that of another login.
    fn is_secret(&self, token: &Token) {
        let encoded = token.encode();
        let parts: BTreeSet<&[u8]> = encoded.windows(16).filter(|part| **part != [0; 16]).collect();
        let tape = self.tape.lock().unwrap();
        let known =
            tape.iter().flat_map(|(.., message)| message.windows(16)).find(|part| parts.contains(part));
        assert_eq!(known, None);
        assert!(self.grants.values().all(|grant| grant.token.encode() != encoded));
    }
}

/// An error that says what is wrong, and is no accident of the client.
fn is_clear(error: &LoginError) -> bool {
    let codes = [
        AbortCode::LGNOVER,
        AbortCode::LGNBADKEY,
        AbortCode::LGNNOTRENEWABLE,
        AbortCode::LGNVERSION,
        AbortCode::RXGEN_SS_UNMARSHAL,
    ];
    match error {
        LoginError::Denied | LoginError::Unproven | LoginError::Host(_) | LoginError::InvalidReply(_) => true,
        LoginError::Call(CallError::Decode(_)) => true,
        LoginError::Call(CallError::Abort(code)) => codes.contains(code),
        _ => false,
    }
}

/// Each attack on each message of a method, with some places of each; and each has changed something, but for those that change no bytes.
fn every_attack(method: Method, messages: usize, rounds: u64) {
    let scene = Scene::new(40, method);
    let mut rng = SimRng::new(rounds);
    let mut changed: BTreeMap<(usize, &str), u64> = BTreeMap::new();
    for round in 0..rounds {
        for message in 0..messages {
            let place = rng.below(1000) as f64 / 1000.0;
            let attacks = [
                ("flip", Attack::Flip(place)),
                ("cut", Attack::Cut(place)),
                ("lengthen", Attack::Lengthen),
                ("exchange", Attack::Exchange(if round % 2 == 0 { 0.0 } else { 0.3 + place * 0.7 })),
                ("other kind", Attack::OtherKind(place)),
                ("twice", Attack::Twice),
                ("early", Attack::Early),
            ];
            // A renewal has one kind of messages, and no later one.
            let attacks = attacks
                .into_iter()
                .filter(|(name, _)| method != Method::Renewal || !matches!(*name, "other kind" | "early"));
            for (name, attack) in attacks {
                *changed.entry((message, name)).or_default() +=
                    u64::from(scene.attacked(method, "alice", message, attack));
                if method == Method::Passphrase {
                    // Failures delay the next login.
                    scene.cell.world.run_for(Duration::from_secs(600));
                }
            }
        }
    }
    for ((message, name), count) in changed {
        let changes = !matches!(name, "lengthen" | "twice" | "early");
        assert_eq!(count > 0, changes, "{method:?}, message {message}: {name} changed {count} logins");
    }
    // Nobody is kept out by what was done.
    let middle = Middle::listening(scene.connection(method, "alice"), &scene.tape);
    scene.get(method, "alice", middle).unwrap();
    says_no_secret(&scene.tape);
}

/// No message has a passphrase, and none that was made with one is made twice.
fn says_no_secret(tape: &Tape) {
    let tape = tape.lock().unwrap();
    let mut made = BTreeSet::new();
    for (is_request, name, message) in tape.iter() {
        for (_, secret, _) in SECRETS {
            assert!(!message.windows(secret.len()).any(|part| part == secret.as_bytes()), "{name}");
        }
        assert!(!is_request || *name == "Renew" || made.insert(message), "{name} again");
    }
}

#[test]
fn nobody_in_the_middle_of_a_login_with_a_passphrase_gets_or_gives_a_token() {
    every_attack(Method::Passphrase, 4, 2);
}

#[test]
fn nobody_in_the_middle_of_a_login_with_a_key_gets_or_gives_a_token() {
    every_attack(Method::Key, 4, 24);
}

#[test]
fn nobody_in_the_middle_of_a_renewal_gets_or_gives_a_token() {
    every_attack(Method::Renewal, 2, 24);
}

#[test]
fn a_false_service_with_the_host_key_of_the_true_one_is_found_out() {
    let scene = Scene::new(41, Method::Key);
    let (key, tape) = (scene.cell.secret.host_key(), &scene.tape);
    // It knows the user and the key.
    let false_one = cell(42);
    false_one.add_key("alice", &Key::new(1));
    let outcome = |attack: Option<Attack>| {
        let service = false_one.anonymous();
        let middle = match attack {
            Some(attack) => Middle::attacking(service, tape, 1, attack),
            None => Middle::listening(service, tape),
        };
        let env = false_one.env.clone();
        false_one.world.run(async move {
            client::login_with_ssh(&middle, &login("alice"), &Key::new(1), |host| *host == key, &env).await
        })
    };
    assert_eq!(outcome(None), Err(LoginError::Host(false_one.secret.host_key())));
    assert_eq!(outcome(Some(Attack::HostKey(key.0))), Err(LoginError::Unproven));
    // The reply of the true one to an earlier login has its signature, of another exchange.
    assert_eq!(outcome(Some(Attack::Exchange(0.0))), Err(LoginError::Unproven));
}
