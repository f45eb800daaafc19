//! `andrew revoke`: ends the tokens of a user, or of everybody who has logged in from a host.

use super::login::cell_choice::CellOptions;
use super::passwd::{CredentialEditor, LoginRoute};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_login::client::{self, Revoked};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};

/// Options of `andrew revoke`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
All tokens that the user has now are refused by every server of the cell from the next call on, within a second; what the cache of
a computer has stays readable there. Logging in again gives new tokens: --lock prevents that, until somebody sets a passphrase
(`andrew passwd USER`). Users can revoke their own tokens; an administrator, and the owner of the cell that runs here, those of all.

With --host, the tokens of every user who has logged in from that address, as far as the cell remembers: the last 16 addresses of
each user. Kerberos tickets end that were obtained before now; the realm makes new ones.

Examples:
  andrew revoke alice                  her laptop is lost
  andrew revoke alice --lock           she has left
  andrew revoke --host 192.0.2.77      a shared computer was broken into")]
pub struct Args {
    /// User whose tokens to revoke
    #[arg(required_unless_present = "host")]
    user: Option<String>,
    /// Revoke the tokens of all users who have logged in from this address, or from the addresses of this name
    #[arg(long, value_name = "HOST", conflicts_with = "user")]
    host: Option<String>,
    /// Remove the passphrases and SSH keys of the users too
    #[arg(long)]
    lock: bool,
    #[command(flatten)]
    cell: CellOptions,
}

#[derive(Serialize)]
struct Done {
    users: Vec<String>,
    locked: bool,
    /// The address or name that was given with `--host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

impl Args {
    /// Revokes the tokens.
    ///
    /// # Errors
    /// The refusal of the login service, or a name without an address.
    pub fn run(self, json: bool) -> CommandResult {
        let chosen = self.cell.choose()?;
        let mut users = Vec::new();
        match (&self.user, &self.host) {
            (Some(user), _) => {
                let editor = CredentialEditor::open(chosen, Some(user))?;
                let revoked = &Revoked::User(editor.user.clone());
                users = editor
                    .run(|service| async move { client::revoke(&service, revoked, self.lock).await })?;
            }
            (None, Some(host)) => {
                let route = LoginRoute::open(chosen, None)?;
                for address in addresses(host)? {
                    let revoked = &Revoked::Host(address);
                    let revoke = |service| async move { client::revoke(&service, revoked, self.lock).await };
                    users.extend(route.run(revoke)?);
                }
            }
            (None, None) => return Err(CommandError::usage("name a user, or a host with --host")),
        }
        users.sort();
        users.dedup();
        output::show(json, &Done { users, locked: self.lock, host: self.host });
        Ok(())
    }
}

/// The addresses of a host, or the one that is given.
fn addresses(host: &str) -> CommandResult<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let failed =
        |error| CommandError::usage(format!("'{host}' has no address ({error}); give the address itself"));
    let found: Vec<IpAddr> = (host, 0).to_socket_addrs().map_err(failed)?.map(|found| found.ip()).collect();
    Ok(found)
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.users.is_empty() {
            let host = self.host.as_deref().unwrap_or_default();
            writeln!(f, "no user is known to have logged in from {host}: no token was revoked")?;
            return writeln!(f, "tokens of one user are revoked by `andrew revoke USER`");
        }
        for user in &self.users {
            writeln!(f, "{user}: all tokens of before now are revoked")?;
            match self.locked {
                true => writeln!(f, "  and can log in no more; `andrew passwd {user}` sets a passphrase")?,
                false => writeln!(
                    f,
                    "  and can log in again; `andrew ssh-keys list --user {user}` shows how, --lock ends it"
                )?,
            }
        }
        Ok(())
    }
}
