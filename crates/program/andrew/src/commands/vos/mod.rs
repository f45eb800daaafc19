//! `andrew vos`: volumes and their sites, with the commands of OpenAFS's `vos`.
//!
//! With `--servers` the calls go to that cell. Without, they go to the cell that runs on the state directory, with its
//! key: every user who may read the key is its owner. Every command is an operation of `afs-admin` ([`ops`]), so that
//! each call goes to the server that was named; commands that change several things use a journal.

mod backup;
mod check;
mod clone;
mod copy;
mod create;
pub(super) mod dates;
mod dump;
mod dump_files;
mod entries;
mod examine;
mod journal_choice;
mod journal_files;
mod listvldb;
mod listvol;
mod move_;
mod operations;
pub mod ops;
mod partinfo;
mod placement;
mod progress;
mod release;
mod removal;
mod remove;
mod restore;
pub mod route_options;
mod server_volume;
mod single_volume;
mod site_words;
mod sites;
mod snapshot;
mod snapshot_schedule;
mod status;
mod tier;
mod volume_text;

use crate::error::CommandResult;
use afs_admin::CheckDirection;
use clap::Subcommand;

use ops::Ops;
use route_options::RouteOptions;

/// `andrew vos`.
#[derive(clap::Args, Debug)]
#[command(
    infer_subcommands = true,
    infer_long_args = true,
    arg_required_else_help = true,
    after_help = "\
Commands can be abbreviated as long as they are unambiguous, and accept OpenAFS's single-dash options
(`vos create -server S -partition a -name n`). PARTITION is a letter, vicepa or /vicepa.

Examples:
  andrew vos create projects && andrew fs mkmount ~/afs/projects projects
  andrew vos create 192.0.2.1 a projects
  andrew vos listvol localhost
  andrew vos examine projects --servers 192.0.2.1"
)]
pub struct Args {
    #[command(flatten)]
    route: RouteOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create a volume
    Create(create::Args),
    /// Remove a volume with its contents
    Remove(remove::Args),
    /// Show a volume and where it is
    #[command(visible_alias = "volinfo")]
    Examine(examine::Args),
    /// Show the volumes of a server
    Listvol(listvol::Args),
    /// Show the entries of the location database
    Listvldb(listvldb::Args),
    /// Show the free space on a server's partitions
    Partinfo(partinfo::Args),
    /// Show the transactions of a volume server
    Status(status::Args),
    /// Move a volume to another server or partition while it is in use
    Move(move_::Args),
    /// Copy a volume
    Copy(copy::Args),
    /// Copy a volume without an entry in the location database
    Shadow(copy::Args),
    /// Make the backup volume of a volume
    Backup(backup::Args),
    /// Make the backup volumes of many volumes
    Backupsys(backup::AllArgs),
    /// Make a clone of a volume
    Clone(clone::Args),
    /// Bring the read-only copies of a volume up to date
    Release(release::Args),
    /// Write a dump of a volume to a file or a pipe
    Dump(dump::Args),
    /// Restore a volume from a dump
    Restore(restore::Args),
    /// Make, show and restore named snapshots of a volume
    Snapshot(snapshot::Args),
    /// Keep the old, large files of a volume on another drive of its file server
    Tier(tier::Args),
    /// Rename a volume
    Rename(single_volume::RenameArgs),
    /// Exchange the names of two volumes
    Swap(single_volume::SwapArgs),
    /// Add a site for a read-only copy of a volume
    Addsite(sites::AddArgs),
    /// Remove the site of a read-only copy from the location database
    Remsite(sites::Args),
    /// Change the site of a volume in the location database
    Changeloc(sites::Args),
    /// Make a read-only copy the read-write volume
    #[command(name = "convertROtoRW", alias = "convertrotorw")]
    Convert(sites::ConvertArgs),
    /// Delete a volume at a server, without the location database
    Zap(server_volume::ZapArgs),
    /// Bring a volume on line
    Online(server_volume::ServerVolume),
    /// Take a volume off line
    Offline(server_volume::OfflineArgs),
    /// End a transaction of a volume server
    Endtrans(server_volume::EndArgs),
    /// Set the quota or other fields of a volume
    Setfields(single_volume::SetArgs),
    /// Set where the bytes of a volume's files may be read and stored
    Setpath(single_volume::PathArgs),
    /// Set whether mounts may have leases of a volume's directories
    Setleases(single_volume::LeasesArgs),
    /// Set whether modes of directories close them
    Setmodes(single_volume::ModesArgs),
    /// Set on how many drives the data of a volume are when a store is complete
    Setcopies(placement::CopiesArgs),
    /// Set over how many drives the data of each file of a volume go round
    Setwidth(placement::WidthArgs),
    /// Show how large a dump would be
    Size(single_volume::SizeArgs),
    /// Lock the entry of a volume
    Lock(single_volume::VolumeArg),
    /// Unlock the entry of a volume
    Unlock(single_volume::VolumeArg),
    /// Compare the location database with the servers, and repair it
    Check(check::Args),
    /// Enter the volumes of the servers into the location database
    Syncvldb(check::SyncArgs),
    /// Remove entries without volumes from the location database
    Syncserv(check::SyncArgs),
    /// Show the operations in progress
    Operations(operations::Args),
    /// Complete or undo interrupted operations
    Resume(operations::ResumeArgs),
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line; status 2 if a name or value was invalid.
    pub fn run(self, json: bool) -> CommandResult {
        let route = &self.route;
        let ops = || Ops::open(route, json);
        match self.command {
            Command::Create(args) => args.run(&ops()?, json),
            Command::Remove(args) => args.run(&ops()?, json),
            Command::Examine(args) => args.run(&ops()?, json),
            Command::Listvol(args) => args.run(&ops()?, json),
            Command::Listvldb(args) => args.run(&ops()?, json),
            Command::Partinfo(args) => args.run(&ops()?, json),
            Command::Status(args) => args.run(&ops()?, json),
            Command::Move(args) => args.run(&ops()?, json),
            Command::Copy(args) => args.run(&ops()?, json, false),
            Command::Shadow(args) => args.run(&ops()?, json, true),
            Command::Backup(args) => args.run(&ops()?, json),
            Command::Backupsys(args) => args.run(&ops()?, json),
            Command::Clone(args) => args.run(&ops()?, json),
            Command::Release(args) => args.run(&ops()?, json),
            Command::Dump(args) => args.run(&ops()?, json),
            Command::Restore(args) => args.run(&ops()?, json),
            Command::Snapshot(args) => args.run(&ops()?, json),
            Command::Tier(args) => args.run(route, json),
            Command::Rename(args) => args.run(&ops()?, json),
            Command::Swap(args) => args.run(&ops()?, json),
            Command::Addsite(args) => args.run(&ops()?, json),
            Command::Remsite(args) => args.remove(&ops()?, json),
            Command::Changeloc(args) => args.change(&ops()?, json),
            Command::Convert(args) => args.run(&ops()?, json),
            Command::Zap(args) => args.run(&ops()?, json),
            Command::Online(args) => args.online(&ops()?, json),
            Command::Offline(args) => args.run(&ops()?, json),
            Command::Endtrans(args) => args.run(&ops()?, json),
            Command::Setfields(args) => args.run(&ops()?, json),
            Command::Setpath(args) => args.run(&ops()?, json),
            Command::Setleases(args) => args.run(&ops()?, json),
            Command::Setmodes(args) => args.run(&ops()?, json),
            Command::Setcopies(args) => args.run(&ops()?, json),
            Command::Setwidth(args) => args.run(&ops()?, json),
            Command::Size(args) => args.run(&ops()?, json),
            Command::Lock(args) => args.lock(&ops()?, json, true),
            Command::Unlock(args) => args.lock(&ops()?, json, false),
            Command::Check(args) => args.run(&ops()?, json),
            Command::Syncvldb(args) => args.run(&ops()?, json, CheckDirection::Volumes),
            Command::Syncserv(args) => args.run(&ops()?, json, CheckDirection::Entries),
            Command::Operations(args) => args.run(&ops()?, json),
            Command::Resume(args) => args.run(&ops()?, json),
        }
    }
}
