//! `andrew pts adduser` and `andrew pts removeuser`: memberships.

use super::names::{self, UserOrGroup};
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::pt::{AddToGroup, RemoveFromGroup};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts adduser`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew pts adduser [OPTIONS] USER GROUP\n       andrew pts adduser [OPTIONS] -user USER... -group GROUP...",
    after_help = "\
A group can be a member of a group as well, up to five levels deep.

Examples:
  andrew pts adduser bob alice:friends
  andrew pts adduser -user bob carol -group alice:friends staff"
)]
pub struct AddArgs {
    #[command(flatten)]
    pairs: Pairs,
}

/// Options of `andrew pts removeuser`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew pts removeuser [OPTIONS] USER GROUP\n       andrew pts removeuser [OPTIONS] -user USER... -group GROUP...",
    after_help = "\
A removed user loses the rights of the group at the next call to a server.

Examples:
  andrew pts removeuser bob alice:friends
  andrew pts removeuser -user bob carol -group alice:friends staff"
)]
pub struct RemoveArgs {
    #[command(flatten)]
    pairs: Pairs,
}

/// Every pair of a user and a group.
#[derive(clap::Args, Debug)]
struct Pairs {
    /// User and group
    #[arg(value_name = "USER GROUP", num_args = 0..=2, allow_negative_numbers = true)]
    bare: Vec<String>,
    /// Users, as OpenAFS's pts takes them
    #[arg(long, value_name = "USER", num_args = 1.., allow_negative_numbers = true)]
    user: Vec<String>,
    /// Groups, as OpenAFS's pts takes them
    #[arg(long, value_name = "GROUP", num_args = 1.., allow_negative_numbers = true)]
    group: Vec<String>,
}

#[derive(Serialize)]
struct Membership {
    user: String,
    group: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Memberships(Vec<Membership>);

impl AddArgs {
    /// Adds every user to every group.
    ///
    /// # Errors
    /// A user or group that does not exist, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        self.pairs.each(target, json, "adduser", |target, user, group| {
            target.call(&AddToGroup { member: user.id, group: group.id }).map_err(|failure| {
                refused(failure, &format!("unable to add user {} to group {}", user.text, group.text))
            })
        })
    }
}

impl RemoveArgs {
    /// Removes every user from every group.
    ///
    /// # Errors
    /// A user or group that does not exist, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        self.pairs.each(target, json, "removeuser", |target, user, group| {
            target.call(&RemoveFromGroup { member: user.id, group: group.id }).map_err(|failure| {
                refused(failure, &format!("unable to remove user {} from group {}", user.text, group.text))
            })
        })
    }
}

impl Pairs {
    /// Applies `change` to each pair, and prints the pairs that succeeded.
    fn each(
        self,
        target: &mut Target,
        json: bool,
        word: &str,
        change: impl Fn(&mut Target, &UserOrGroup, &UserOrGroup) -> CommandResult,
    ) -> CommandResult {
        let (users, groups) = self.parties(target, word)?;
        let pairs = groups.iter().flat_map(|group| users.iter().map(move |user| (user, group)));
        let mut done = Vec::new();
        let outcome = target.for_each(pairs, |target, (user, group)| {
            change(target, user, group)?;
            done.push(Membership { user: user.text.clone(), group: group.text.clone() });
            Ok(())
        });
        output::show(json, &Memberships(done));
        outcome
    }

    fn parties(self, target: &mut Target, word: &str) -> CommandResult<(Vec<UserOrGroup>, Vec<UserOrGroup>)> {
        let (mut users, mut groups) = (self.user, self.group);
        let mut bare = self.bare.into_iter();
        if users.is_empty() {
            users.extend(bare.next());
        }
        if groups.is_empty() {
            groups.extend(bare.next());
        }
        if users.is_empty() || groups.is_empty() || bare.next().is_some() {
            return Err(CommandError::usage(format!(
                "pts: {word} needs a user and a group; see `andrew pts {word} --help`"
            )));
        }
        Ok((names::find_all(target, &users)?, names::find_all(target, &groups)?))
    }
}

/// OpenAFS's pts prints nothing.
impl fmt::Display for Memberships {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
