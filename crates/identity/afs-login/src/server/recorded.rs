//! Records of logins, of revocations, and of changes to the ways in which users log in.

use std::sync::Arc;

use afs_rpc::{Caller, Principal, Table};
use afs_wire::error::AbortCode;
use afs_wire::login::{self, Attempt, KeyBlob, UserText};
use afs_wire::rpc::Request;

use super::LoginServer;
use super::attempt::Method;
use super::revoke::address;
use crate::ssh::UserKey;

/// The destination of records.
pub trait Recorder: Send + Sync + 'static {
    /// Records the end of a call: its name in the protocol's document, what it was about, as the caller named it, and
    /// its outcome, where 0 is success. Does not wait.
    fn record(&self, caller: &Caller, call: &'static str, about: &str, outcome: AbortCode);
}

/// A call that is recorded.
pub(super) trait Recorded: Request {
    /// What it is about, for a person.
    fn about(&self, server: &LoginServer, caller: &Caller) -> String;
}

/// Registers `operation` for `R`, and records the outcome.
pub(super) fn recorded<R, F>(
    table: Table<LoginServer>,
    operation: impl Fn(Arc<LoginServer>, Caller, R) -> F + Send + Sync + 'static,
) -> Table<LoginServer>
where
    R: Recorded,
    F: Future<Output = Result<R::Reply, AbortCode>> + Send + 'static,
{
    let operation = Arc::new(operation);
    table.call::<R, _, _, AbortCode>(move |server: Arc<LoginServer>, caller, ask| {
        let operation = operation.clone();
        async move {
            let about = ask.about(&server, &caller);
            let outcome = operation(server.clone(), caller.clone(), ask).await;
            let code = outcome.as_ref().err().copied().unwrap_or(AbortCode::OK);
            server.recorder.record(&caller, R::NAME, &about, code);
            outcome
        }
    })
}

impl Recorded for login::PassphraseFinish {
    fn about(&self, server: &LoginServer, _: &Caller) -> String {
        of_attempt(server, Method::Passphrase, &self.attempt)
    }
}

impl Recorded for login::SshFinish {
    fn about(&self, server: &LoginServer, _: &Caller) -> String {
        of_attempt(server, Method::Ssh, &self.attempt)
    }
}

impl Recorded for login::RegisterFinish {
    fn about(&self, _: &LoginServer, caller: &Caller) -> String {
        user(&self.user, caller)
    }
}

impl Recorded for login::RemovePassphrase {
    fn about(&self, _: &LoginServer, caller: &Caller) -> String {
        user(&self.user, caller)
    }
}

impl Recorded for login::AddSshKey {
    fn about(&self, _: &LoginServer, caller: &Caller) -> String {
        user(&self.user, caller) + &key(&self.key)
    }
}

impl Recorded for login::RemoveSshKey {
    fn about(&self, _: &LoginServer, caller: &Caller) -> String {
        user(&self.user, caller) + &key(&self.key)
    }
}

impl Recorded for login::Revoke {
    fn about(&self, _: &LoginServer, caller: &Caller) -> String {
        let whose = match address(&self.host) {
            Some(host) => format!("the users of {}", host.to_canonical()),
            None => user(&self.user, caller),
        };
        if self.remove_ways { whose + ", with their ways to log in" } else { whose }
    }
}

fn of_attempt(server: &LoginServer, method: Method, sealed: &Attempt) -> String {
    server.open_attempt(method, sealed).map(|attempt| attempt.user.to_string()).unwrap_or_default()
}

/// The user that a call names: nobody is the caller.
fn user(named: &UserText, caller: &Caller) -> String {
    match caller.identity.principal() {
        Some(Principal::Named { name, .. }) if named.is_empty() => name.to_string(),
        _ => String::from_utf8_lossy(named).into_owned(),
    }
}

fn key(blob: &KeyBlob) -> String {
    UserKey::from_wire(blob).map(|key| format!(" {key}")).unwrap_or_default()
}
