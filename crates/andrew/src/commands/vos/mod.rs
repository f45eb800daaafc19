//! `andrew vos`: volumes and where they are, in the words of OpenAFS's `vos`.
//!
//! With `--servers` the calls go over the network, as nobody in particular. Without, they go to the cell
//! that runs on the state directory, through its control socket, as its owner.

mod create;
mod dates;
mod entries;
mod examine;
mod listvldb;
mod listvol;
mod partinfo;
pub(crate) mod reach;
mod remove;
mod show;
mod status;

use crate::error::CommandResult;
use clap::Subcommand;

use reach::Reach;

/// `andrew vos`.
#[derive(clap::Args, Debug)]
#[command(
    infer_subcommands = true,
    infer_long_args = true,
    arg_required_else_help = true,
    after_help = "\
Commands may be shortened as long as they stay clear, and take OpenAFS's single-dash options
(`vos create -server S -partition a -name n`). PARTITION is a letter, vicepa or /vicepa.

Examples:
  andrew vos create localhost a projects
  andrew vos listvol localhost
  andrew vos examine projects --servers 192.0.2.1"
)]
pub struct Args {
    #[command(flatten)]
    reach: Reach,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a volume
    Create(create::Args),
    /// Remove a volume and what it holds
    Remove(remove::Args),
    /// Show a volume and where it is
    #[command(visible_alias = "volinfo")]
    Examine(examine::Args),
    /// Show the volumes of a server
    Listvol(listvol::Args),
    /// Show what the location database knows
    Listvldb(listvldb::Args),
    /// Show the room on a server's partitions
    Partinfo(partinfo::Args),
    /// Show the transactions of a volume server
    Status(status::Args),
}

impl Args {
    /// Does what the subcommand says.
    ///
    /// # Errors
    /// One line; status 2 when a name or value was wrong.
    pub fn run(self, json: bool) -> CommandResult {
        let mut target = self.reach.open()?;
        let target = &mut target;
        match self.command {
            Command::Create(args) => args.run(target, json),
            Command::Remove(args) => args.run(target, json),
            Command::Examine(args) => args.run(target, json),
            Command::Listvol(args) => args.run(target, json),
            Command::Listvldb(args) => args.run(target, json),
            Command::Partinfo(args) => args.run(target, json),
            Command::Status(args) => args.run(target, json),
        }
    }
}
