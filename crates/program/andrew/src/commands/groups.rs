//! `andrew groups`: suspends membership in groups for a session, and resumes it.

use super::login::cell_choice::CellOptions;
use super::login::exchange::{changed, check_handed};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::tokens::{KeptToken, Mounts, SessionId, TokenStore};
use afs_login::client::GroupChange;
use afs_net::System;
use afs_rpc::Env;
use serde::Serialize;
use std::fmt;

/// Options of `andrew groups`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
For your processes outside of sessions, or for the session of `andrew run-with-token` in which this is called: the
servers give them none of the rights that come from being in the group, `system:administrators` too. `andrew tokens` shows
what is suspended. What `andrew login --without` and `run-with-token --without` leave out is resumed by another login
alone.

Examples:
  andrew groups disable system:administrators
  andrew groups enable system:administrators
  andrew run-with-token --without system:administrators -- make install    for one command")]
pub struct Args {
    #[command(subcommand)]
    command: GroupsCommand,
}

#[derive(clap::Subcommand, Debug)]
enum GroupsCommand {
    /// Suspend membership: go on without the rights of these groups
    Disable(Named),
    /// Resume membership in groups that were disabled
    Enable(Named),
}

#[derive(clap::Args, Debug)]
struct Named {
    /// Names of the groups
    #[arg(required = true, value_name = "GROUP")]
    groups: Vec<String>,
    #[command(flatten)]
    cell: CellOptions,
}

/// The token that is used now.
#[derive(Serialize)]
struct Changed {
    cell: String,
    user: String,
    /// The groups whose rights it does not have.
    without: Vec<String>,
    /// Mounts that have it.
    mounts: usize,
    #[serde(skip)]
    refusals: Vec<String>,
}

impl Args {
    /// Exchanges the token and hands the new one to the mounts.
    ///
    /// # Errors
    /// There is no valid token; the login service refuses; a mount does not take the new token.
    pub fn run(self, json: bool) -> CommandResult {
        let (named, suspends) = match self.command {
            GroupsCommand::Disable(named) => (named, true),
            GroupsCommand::Enable(named) => (named, false),
        };
        let chosen = named.cell.choose()?;
        let store = TokenStore::current()?;
        let now = System::with_workers(1).map_err(CommandError::failed)?.wall();
        let kept = store.get(&chosen.cell)?.filter(|kept| kept.is_good_at(now));
        let kept = kept.ok_or_else(|| {
            CommandError::usage(format!("you have no token of {}; `andrew login` gets one", chosen.cell))
        })?;
        let (suspend, resume) =
            if suspends { (named.groups, Vec::new()) } else { (Vec::new(), named.groups) };
        let kept = changed(&kept, &GroupChange { suspend, resume, lasting: false })?;
        store.put(&kept)?;
        let handed = Mounts::running().hand_over(SessionId::current()?, &kept);
        let narrowed = check_handed(&kept, &handed);
        output::show(json, &Changed::new(&kept, handed.taken, handed.refusals));
        narrowed
    }
}

impl Changed {
    fn new(kept: &KeptToken, mounts: usize, refusals: Vec<String>) -> Self {
        let (cell, user) = (kept.cell.to_string(), kept.user.clone());
        Self { cell, user, without: kept.grant.without.clone(), mounts, refusals }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} has the rights of all groups", self.user, self.cell)?;
        if !self.without.is_empty() {
            write!(f, " but {}", self.without.join(", "))?;
        }
        writeln!(f)?;
        self.refusals.iter().try_for_each(|line| writeln!(f, "a mount did not take the token: {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_said() {
        let mut changed = Changed {
            cell: "example.org".into(),
            user: "alice".into(),
            without: Vec::new(),
            mounts: 1,
            refusals: Vec::new(),
        };
        assert_eq!(changed.to_string(), "alice in example.org has the rights of all groups\n");
        changed.without = vec!["alice:project".into(), "system:administrators".into()];
        assert_eq!(
            changed.to_string(),
            "alice in example.org has the rights of all groups but alice:project, system:administrators\n"
        );
    }
}
