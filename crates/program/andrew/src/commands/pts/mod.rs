//! `andrew pts`: users, groups and memberships, with the commands of OpenAFS's `pts`.
//!
//! With `--servers` the calls go over the network. Without, they go to the cell that runs on the state directory,
//! through its control socket, as its owner.

mod access;
mod chown;
mod control_call;
mod creategroup;
mod createuser;
mod delete;
mod examine;
pub(crate) mod listed;
mod listentries;
mod listmax;
mod listowned;
mod members;
mod membership;
pub(crate) mod names;
mod rename;
pub(crate) mod route;
mod setfields;
mod setmax;

#[cfg(test)]
mod tests;

use crate::error::CommandResult;
use clap::Subcommand;

use route::{RouteOptions, Target};

/// `andrew pts`.
#[derive(clap::Args, Debug)]
#[command(
    infer_subcommands = true,
    infer_long_args = true,
    arg_required_else_help = true,
    after_help = "\
Commands can be abbreviated as long as they are unambiguous, and accept OpenAFS's single-dash options
(`pts adduser -user alice bob -group staff`). Names of groups are OWNER:NAME. A user or group can
always be given by number; numbers of groups are negative.

Examples:
  andrew pts createuser alice
  andrew pts creategroup alice:friends -owner alice
  andrew pts adduser bob alice:friends
  andrew pts membership alice:friends"
)]
pub struct Args {
    #[command(flatten)]
    route: RouteOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create users
    #[command(visible_alias = "cu")]
    Createuser(createuser::Args),
    /// Create groups
    #[command(visible_alias = "cg")]
    Creategroup(creategroup::Args),
    /// Add users to groups
    Adduser(members::AddArgs),
    /// Remove users from groups
    Removeuser(members::RemoveArgs),
    /// Show the members of a group, or the groups of a user
    #[command(visible_alias = "groups")]
    Membership(membership::Args),
    /// Show a user or group
    #[command(visible_alias = "check")]
    Examine(examine::Args),
    /// Remove users and groups
    Delete(delete::Args),
    /// Rename a user or group
    Rename(rename::Args),
    /// Change the owner of a group
    Chown(chown::Args),
    /// Show the groups that a user or group owns
    Listowned(listowned::Args),
    /// Show all users or groups
    Listentries(listentries::Args),
    /// Set who may see and change a user or group, and how many groups a user may create
    Setfields(setfields::Args),
    /// Show the largest user and group numbers, which determine the next ones
    Listmax(listmax::Args),
    /// Set the largest user and group numbers, which determine the next ones
    Setmax(setmax::Args),
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line; status 2 if a name or value was invalid.
    pub fn run(self, json: bool) -> CommandResult {
        let mut target = self.route.open()?;
        self.command.run(&mut target, json)
    }
}

impl Command {
    fn run(self, target: &mut Target, json: bool) -> CommandResult {
        match self {
            Self::Createuser(args) => args.run(target, json),
            Self::Creategroup(args) => args.run(target, json),
            Self::Adduser(args) => args.run(target, json),
            Self::Removeuser(args) => args.run(target, json),
            Self::Membership(args) => args.run(target, json),
            Self::Examine(args) => args.run(target, json),
            Self::Delete(args) => args.run(target, json),
            Self::Rename(args) => args.run(target, json),
            Self::Chown(args) => args.run(target, json),
            Self::Listowned(args) => args.run(target, json),
            Self::Listentries(args) => args.run(target, json),
            Self::Setfields(args) => args.run(target, json),
            Self::Listmax(args) => args.run(target, json),
            Self::Setmax(args) => args.run(target, json),
        }
    }
}
