//! `andrew login`: gets a token, keeps it, and hands it to the mounts.

mod agent;
pub(super) mod cell_choice;
pub(super) mod exchange;
mod known_hosts;
pub(super) mod obtain;
pub(super) mod passphrase;
pub(super) mod service;
pub(super) mod signers;

use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::{HandedOver, KeptToken, Mounts, SessionId, TokenStore};
use afs_krb5::{KerberosOptions, token_from_kerberos};
use afs_login::Grant;
use cell_choice::{CellOptions, ChosenCell};
use obtain::LoginOptions;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew login`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without --ssh, --ssh-key or --passphrase-file: with one of your SSH keys where the cell's login service is known
already, else with your passphrase. The token goes into a file of yours and to every mount on this machine.

Examples:
  andrew login alice                                   in the cell that runs or is mounted here
  andrew login alice --cell example.org --servers 192.0.2.1
  andrew login --ssh-key ~/.ssh/id_ed25519
  andrew login alice --without system:administrators   with all rights but those of the group
  andrew login --kerberos                              after kinit")]
pub struct Args {
    /// Your user name in the cell [default: your name on this machine]
    user: Option<String>,
    #[command(flatten)]
    cell: CellOptions,
    #[command(flatten)]
    options: LoginOptions,
    /// Get the token with your Kerberos tickets
    #[arg(long, conflicts_with_all = ["ssh", "ssh_key", "passphrase_file"])]
    kerberos: bool,
    /// Realm of the cell's Kerberos service, if it is not the usual one
    #[arg(long, value_name = "REALM", requires = "kerberos")]
    realm: Option<String>,
    /// The cell's Kerberos service [default: afs/CELL, then afs]
    #[arg(long, value_name = "PRINCIPAL", requires = "kerberos")]
    service: Option<String>,
    /// Leave out the rights of this group until the next login; may be given several times
    #[arg(long, value_name = "GROUP", conflicts_with = "kerberos")]
    without: Vec<String>,
    /// Write the token only to this file, for `andrew run-with-token --token-file`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

#[derive(Serialize)]
struct LoggedIn {
    cell: String,
    user: String,
    /// The groups whose rights the token does not have.
    without: Vec<String>,
    /// Time of expiry, in Unix seconds.
    expires: Option<u64>,
    /// Time until which the token may be renewed, in Unix seconds.
    renewable_until: Option<u64>,
    /// Mounts that have the token.
    mounts: usize,
    /// Mounts that do not know the cell, and do not have it.
    mounts_without_cell: usize,
    #[serde(skip)]
    refusals: Vec<String>,
}

impl Args {
    /// Logs in, keeps the token, and hands it to the mounts.
    ///
    /// # Errors
    /// No token was obtained, or it cannot be kept.
    pub fn run(self, json: bool) -> CommandResult {
        let chosen = self.cell.choose()?;
        let kept = if self.kerberos {
            self.kerberos(&chosen)?
        } else {
            let kept = self.options.obtain(self.user.as_deref(), &chosen)?;
            exchange::without(kept, &self.without)?
        };
        let handed = match &self.token_file {
            Some(file) => {
                TokenStore::file(file)?.put(&kept)?;
                HandedOver::default()
            }
            None => {
                TokenStore::current()?.put(&kept)?;
                Mounts::running().hand_over(SessionId::current()?, &kept)
            }
        };
        let narrowed = exchange::check_handed(&kept, &handed);
        output::show(json, &LoggedIn::new(&kept, handed));
        narrowed
    }

    fn kerberos(&self, chosen: &ChosenCell) -> CommandResult<KeptToken> {
        let options = KerberosOptions { realm: self.realm.clone(), service: self.service.clone() };
        let made = token_from_kerberos(&chosen.cell, &options)?;
        match &self.user {
            Some(user) if *user != made.user => Err(not_a_user(format!(
                "the Kerberos tickets are those of {}, not of {user}; get others with `kinit`",
                made.user
            ))),
            _ => Ok(chosen.kept(made.user, Grant::of_token(made.token))),
        }
    }
}

impl LoggedIn {
    fn new(kept: &KeptToken, handed: HandedOver) -> Self {
        let until = Some(kept.grant.renewable_until.secs).filter(|_| !kept.grant.renewal.is_empty());
        Self {
            cell: kept.cell.to_string(),
            user: kept.user.clone(),
            without: kept.grant.without.clone(),
            expires: kept.token().expires().map(|end| end.secs),
            renewable_until: until,
            mounts: handed.taken,
            mounts_without_cell: handed.strangers,
            refusals: handed.refusals,
        }
    }
}

impl fmt::Display for LoggedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is logged in to {}", self.user, self.cell)?;
        if !self.without.is_empty() {
            write!(f, ", without the rights of {}", self.without.join(", "))?;
        }
        writeln!(f)?;
        if self.mounts == 0 && self.refusals.is_empty() && self.mounts_without_cell > 0 {
            write_unknown(f, &self.cell)?;
        }
        self.refusals.iter().try_for_each(|line| writeln!(f, "a mount did not take the token: {line}"))
    }
}

/// What a user who has logged in to a cell that no running mount knows can do.
fn write_unknown(f: &mut fmt::Formatter<'_>, cell: &str) -> fmt::Result {
    writeln!(f, "no mount on this machine knows {cell}, so none has the token; you keep it in a file")?;
    writeln!(
        f,
        "a mount of yours that you make now, with `andrew mount --cell {cell}`, takes it by itself; for one that runs"
    )?;
    writeln!(
        f,
        "look at a file of {cell} there, or add the cell with `andrew fs newcell {cell} SERVER`, and log in again"
    )
}

/// Error for an invalid user name.
fn not_a_user(error: impl fmt::Display) -> CommandError {
    CommandError::usage(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(taken: usize, strangers: usize) -> String {
        let logged_in = LoggedIn {
            cell: "example.org".into(),
            user: "alice".into(),
            without: Vec::new(),
            expires: None,
            renewable_until: None,
            mounts: taken,
            mounts_without_cell: strangers,
            refusals: Vec::new(),
        };
        logged_in.to_string()
    }

    #[test]
    fn a_login_to_a_cell_that_no_mount_knows_says_so_and_what_to_do() {
        let first = "alice is logged in to example.org\n";
        // No mount runs, or one has the token.
        assert_eq!((told(0, 0), told(1, 0), told(1, 2)), (first.into(), first.into(), first.into()));
        let unknown = told(0, 2);
        assert!(unknown.starts_with(first) && unknown.lines().all(|line| line.len() <= 130), "{unknown}");
        for part in [
            "no mount on this machine knows example.org",
            "--cell example.org`",
            "newcell example.org SERVER`",
        ] {
            assert!(unknown.contains(part), "{unknown}");
        }
    }
}
