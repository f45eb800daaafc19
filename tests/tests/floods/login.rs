//! Thousands of logins begun in a user's name, while that user logs in from the usual host.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;
use std::time::Duration;

use afs_auth::Secret;
use afs_login::UserName;
use afs_login::client::{Ask, Login, login_with_passphrase};
use afs_rpc::CallError;
use afs_sim::SimRng;
use afs_wire::ids::CellName;
use afs_wire::rpc::{Request, ServiceId, encode_call};
use andrew_tests::live::cell::CELL;

use super::calls::{NULL, data, next};
use super::crowd::Crowd;
use super::flood::{Flood, answering, run, silent};
use super::honest_clients::Task;
use super::setup::{Setup, USER, server_at};

/// Hosts that reply to pings, and so are counted.
const HOSTS: u16 = 1024;
/// Connections with their addresses, and 16,384 calls.
const GROWTH_KIB_MAX: u64 = 65_536 * 3 / 2 + 16_384 * 4;
const PASSPHRASE: &str = "nobody guesses this one";
/// Interval between logins.
const EVERY: Duration = Duration::from_millis(300);

#[test]
fn no_user_is_locked_out_at_an_address_of_an_earlier_login() {
    let Some(mut setup) = Setup::new("floods-login") else { return };
    let log_in = prepare(&setup);
    let begun = begin(&setup);
    let wave = move |crowd: &Crowd, rng: &mut SimRng| start(crowd, rng, &begun, HOSTS);
    let flood = Flood {
        name: "logins",
        rate: 3000,
        at_least: 0,
        growth_kib_max: GROWTH_KIB_MAX,
        also: &[Task { name: "logins", every: EVERY, call: Box::new(log_in) }],
        wave: &wave,
    };
    run(&mut setup, &flood);
}

/// Gives the user a passphrase; returns the user's login from the host of the honest clients.
pub fn prepare(setup: &Setup) -> impl Fn() -> Result<(), String> + Sync + use<> {
    let file = setup.scratch.path().join("passphrase");
    std::fs::write(&file, format!("{PASSPHRASE}\n")).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    setup.andrew(&["passwd", USER, "--passphrase-file", &file.to_string_lossy()]);
    let system = setup.honest.system().clone();
    let service = setup.honest.nobody().anonymous(7002, ServiceId::LOGIN);
    let (login, env) = (login(), system.env());
    let log_in = move || {
        let passphrase = Secret::new(PASSPHRASE.into());
        let done = system.block_on(login_with_passphrase(&service, &login, &passphrase, &env));
        done.map(drop).map_err(|error| error.to_string())
    };
    log_in().unwrap();
    log_in
}

/// Begins a login from one of so many hosts.
pub fn start(crowd: &Crowd, rng: &mut SimRng, begun: &[u8], hosts: u16) -> u64 {
    let from = if rng.chance(300_000) { silent(rng, hosts) } else { answering(rng, hosts) };
    let line = next(crowd, from, ServiceId::LOGIN.0, NULL);
    crowd.send(from, server_at(7002), &data(line, 0, 1, true, begun));
    1
}

/// The first request of a login of the user, made without the passphrase.
pub fn begin(setup: &Setup) -> Vec<u8> {
    let recorder = Recorder::default();
    let guess = Secret::new(b"some other passphrase".to_vec());
    let (login, env) = (login(), setup.honest.system().env());
    let asked = login_with_passphrase(&recorder, &login, &guess, &env);
    assert!(setup.honest.system().block_on(asked).is_err());
    recorder.0.into_inner().unwrap()
}

fn login() -> Login {
    Login::new(CellName::new(CELL).unwrap(), UserName::new(USER).unwrap())
}

/// Stores the request, and sends nothing.
#[derive(Default)]
struct Recorder(Mutex<Vec<u8>>);

impl Ask for Recorder {
    async fn ask<R: Request>(&self, request: &R) -> Result<R::Reply, CallError> {
        *self.0.lock().unwrap() = encode_call(request);
        Err(CallError::Closed)
    }
}
