//! Login at a login service: with an SSH key or a passphrase.

use super::cell_choice::ChosenCell;
use super::known_hosts::KnownHosts;
use super::passphrase::{self, PASSPHRASE};
use super::service::{Network, refused};
use super::signers;
use crate::error::{CommandError, CommandResult};
use afs_cell::tokens::KeptToken;
use afs_login::client::{self, Login, LoginError};
use afs_login::{Grant, HostKey, Signer, UserName};
use afs_rpc::Level;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;

/// Options of a login.
#[derive(clap::Args, Clone, Debug, Default)]
pub(in crate::commands) struct LoginOptions {
    /// Log in with an SSH key: one of the SSH agent's, or ~/.ssh/id_ed25519
    #[arg(long)]
    ssh: bool,
    /// Log in with this SSH key; a .pub file selects a key of the SSH agent
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// Read the passphrase from the first line of a file (mode 600), or of an open descriptor given by its number
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ssh", "ssh_key"])]
    passphrase_file: Option<PathBuf>,
    /// Fingerprint of the cell's login host key, instead of trusting the first one shown
    #[arg(long, value_name = "SHA256:...")]
    host_key: Option<String>,
    /// Hours until the token expires, if less than the cell's limit
    #[arg(long, value_name = "HOURS", value_parser = clap::value_parser!(u32).range(1..=720))]
    hours: Option<u32>,
    /// Protect the integrity of packets only, without encryption
    #[arg(long)]
    readable: bool,
}

/// The user's name on this machine.
///
/// # Errors
/// The environment does not contain it.
pub(in crate::commands) fn local_user() -> CommandResult<String> {
    let set = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    set("USER")
        .or_else(|| set("LOGNAME"))
        .ok_or_else(|| CommandError::usage("give your user name in the cell: USER"))
}

impl LoginOptions {
    /// Logs in and returns the token.
    ///
    /// # Errors
    /// The refusal of the login service, or a missing key or passphrase.
    pub(in crate::commands) fn obtain(
        &self,
        user: Option<&str>,
        chosen: &ChosenCell,
    ) -> CommandResult<KeptToken> {
        let user = user.map_or_else(local_user, |user| Ok(user.to_owned()))?;
        let user = UserName::new(&user).map_err(super::not_a_user)?;
        let network = Network::open()?;
        let mut login = Login::new(chosen.cell.clone(), user);
        login.lifetime = self.hours.unwrap_or(0) * 3600;
        login.level = if self.readable { Level::Auth } else { Level::Crypt };
        let attempt =
            Attempt { options: self, chosen, network: &network, login, known: KnownHosts::current()? };
        let grant = attempt.run()?;
        if let Some(key) = &grant.host_key {
            attempt.known.set(&chosen.cell, key)?;
        }
        Ok(chosen.kept(attempt.login.user.to_string(), grant))
    }
}

struct Attempt<'a> {
    options: &'a LoginOptions,
    chosen: &'a ChosenCell,
    network: &'a Network,
    login: Login,
    known: KnownHosts,
}

impl Attempt<'_> {
    fn run(&self) -> CommandResult<Grant> {
        let wanted = self.options.ssh || self.options.ssh_key.is_some();
        for key in self.keys()? {
            match self.with_key(&*key)? {
                Ok(grant) => return Ok(grant),
                // Another key may be accepted, and without --ssh there is the passphrase.
                Err(LoginError::Denied) => {}
                Err(LoginError::Signer(_)) if !wanted => {}
                Err(error) => return Err(refused(self.chosen, &error)),
            }
        }
        if wanted {
            let user = &self.login.user;
            return Err(CommandError::failed(format!(
                "none of the SSH keys is one that {user} logs in with; `andrew ssh-keys add` makes it one"
            )));
        }
        self.with_passphrase()
    }

    fn keys(&self) -> CommandResult<Vec<Box<dyn Signer>>> {
        match (&self.options.ssh_key, &self.options.passphrase_file) {
            (Some(file), _) => Ok(vec![signers::of_file(file)?]),
            (None, Some(_)) => Ok(Vec::new()),
            // No question about a host key that may not be needed.
            (None, None) if self.options.ssh || self.expected()?.is_some() => Ok(signers::usual()),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// The expected host key: by fingerprint, or as known.
    fn expected(&self) -> CommandResult<Option<String>> {
        match &self.options.host_key {
            Some(fingerprint) => Ok(Some(fingerprint.clone())),
            None => Ok(self.known.get(&self.chosen.cell)?.map(|key| key.to_string())),
        }
    }

    fn with_key(&self, key: &dyn Signer) -> CommandResult<Result<Grant, LoginError>> {
        let (expected, env) = (self.expected()?, self.network.system.env());
        let trusted = |shown: &HostKey| match &expected {
            Some(fingerprint) => *fingerprint == shown.to_string(),
            None => {
                confirm(&format!("The login service of {} shows the host key {shown}.", self.chosen.cell))
            }
        };
        let (login, env, trusted) = (&self.login, &env, &trusted);
        Ok(self.network.first(self.chosen, None, |service| async move {
            client::login_with_ssh(&service, login, key, trusted, env).await
        }))
    }

    fn with_passphrase(&self) -> CommandResult<Grant> {
        let (user, cell) = (&self.login.user, &self.chosen.cell);
        let secret = match &self.options.passphrase_file {
            Some(file) => passphrase::from_file(PASSPHRASE, file)?,
            None => passphrase::ask(PASSPHRASE, &format!("Passphrase of {user} in {cell}"))?,
        };
        let (login, secret, env) = (&self.login, &secret, &self.network.system.env());
        let outcome = self.network.first(self.chosen, None, |service| async move {
            client::login_with_passphrase(&service, login, secret, env).await
        });
        outcome.map_err(|error| refused(self.chosen, &error))
    }
}

/// Asks the user at the terminal; without a terminal the answer is no.
fn confirm(what: &str) -> bool {
    let Ok(mut terminal) = File::options().read(true).write(true).open("/dev/tty") else { return false };
    if write!(terminal, "{what}\nIs it the cell's own? (yes/no) ").is_err() {
        return false;
    }
    let mut answer = String::new();
    let read = BufReader::new(terminal).read_line(&mut answer);
    read.is_ok() && answer.trim() == "yes"
}
