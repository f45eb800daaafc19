//! `andrew fs`: files, directories and mount points, with the commands of OpenAFS's `fs`.
//!
//! Most commands read and set properties of objects (`afs.acl`, `afs.quota`, ...) over the token socket of the object's mount, with the
//! rights of the user of the command. They work on the mounts of this user and of root.

mod access;
mod access_list;
mod attribute;
mod bypass;
mod cacheparms;
mod calleraccess;
mod checkservers;
mod cleanacl;
mod copyacl;
mod examine;
mod explain;
mod flush;
mod getfid;
mod getserverprefs;
mod listacl;
mod listcells;
mod listquota;
mod lsmount;
mod memberships;
pub(super) mod mkmount;
mod newcell;
mod of_mounts;
pub(super) mod path_cell;
mod path_in_mount;
mod paths;
mod pin;
mod pins;
mod property;
mod recover;
mod rmmount;
mod setacl;
mod setquota;
mod setserverprefs;
mod setvol;
mod snapshots;
mod sysname;
mod taken;
mod volume_status;
mod whereis;
mod whichcell;
mod wscell;

use crate::error::CommandResult;
use clap::Subcommand;

/// `andrew fs`.
#[derive(clap::Args, Debug)]
#[command(
    infer_subcommands = true,
    infer_long_args = true,
    arg_required_else_help = true,
    after_help = "\
Commands can be abbreviated as long as they are unambiguous (`fs lista`), and accept OpenAFS's
single-dash options (`fs sa -dir D -acl user rl`). Without a path the current directory is used.

Examples:
  andrew fs listacl ~/afs
  andrew fs setacl ~/afs/shared system:anyuser read
  andrew fs mkmount ~/afs/projects projects
  andrew fs listquota ~/afs"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the access lists of directories
    #[command(visible_alias = "la")]
    Listacl(listacl::Args),
    /// Show your own rights on files and directories
    #[command(visible_alias = "gca")]
    Getcalleraccess(calleraccess::Args),
    /// Show the rights of a user or group in directories, and their reasons
    Access(access::Args),
    /// Change entries of the access lists of directories
    #[command(visible_alias = "sa")]
    Setacl(setacl::Args),
    /// Copy the access list of a directory to others
    #[command(visible_alias = "ca")]
    Copyacl(copyacl::Args),
    /// Remove access list entries of users and groups that no longer exist
    Cleanacl(cleanacl::Args),
    /// Show quota and use of volumes
    #[command(visible_alias = "lq")]
    Listquota(listquota::ListArgs),
    /// Show how full volumes are, in percent of their quota
    Quota(listquota::QuotaArgs),
    /// Set the quota of a volume
    #[command(visible_alias = "sq")]
    Setquota(setquota::Args),
    /// Set the quota and the off-line message of volumes
    #[command(visible_alias = "sv")]
    Setvol(setvol::Args),
    /// Show the volume that holds a file
    #[command(visible_aliases = ["exa", "listvol", "lv"])]
    Examine(examine::Args),
    /// Show why a file is slow, denied or stale: what this machine knows of it
    Explain(explain::Args),
    /// Show the free space on the server partition that holds a file
    #[command(visible_alias = "df")]
    Diskfree(examine::DiskfreeArgs),
    /// Show the servers that hold files
    #[command(visible_alias = "whe")]
    Whereis(whereis::Args),
    /// Show the cells of files
    Whichcell(whichcell::Args),
    /// Show the fids of files
    Getfid(getfid::Args),
    /// Show the volumes that mount points lead to
    #[command(visible_alias = "ls")]
    Lsmount(lsmount::Args),
    /// Make a mount point for a volume
    #[command(visible_alias = "mkm")]
    Mkmount(mkmount::Args),
    /// Remove mount points; the volumes stay
    #[command(visible_alias = "rmm")]
    Rmmount(rmmount::Args),
    /// Show what snapshots have of a directory, and hide it there
    Snapshots(snapshots::Args),
    /// Drop the cached data of files
    Flush(flush::Args),
    /// Drop the cached data of the volumes that hold files
    #[command(visible_alias = "flushv")]
    Flushvolume(flush::VolumeArgs),
    /// Drop all cached data of the mounts on this machine
    Flushall(flush::AllArgs),
    /// Drop what the mounts know of the places of volumes
    #[command(visible_alias = "checkb")]
    Checkvolumes(flush::LocationsArgs),
    /// Show the file servers that do not reply
    #[command(visible_alias = "checks")]
    Checkservers(checkservers::Args),
    /// Show size and use of the disk caches
    Getcacheparms(cacheparms::Args),
    /// Show or set whether files bypass the disk cache
    Bypass(bypass::Args),
    /// Keep a file or directory complete in the cache, so that it can be read without a server
    Pin(pin::PinArgs),
    /// End pins; what they kept goes when the room is needed
    Unpin(pin::UnpinArgs),
    /// Show what is pinned, and how much of it is missing
    Pins(pins::Args),
    /// Show a property of files as their mounts tell it, for scripts
    #[command(hide = true)]
    Property(property::Args),
    /// List, save, retry or discard data that could not be stored
    Recover(recover::Args),
    /// Show the cell of a mount on this machine
    Wscell(wscell::Args),
    /// Show the cells that the mounts on this machine know, and their database servers
    #[command(visible_alias = "lsc")]
    Listcells(listcells::Args),
    /// Add a cell to the mounts on this machine, or change its database servers
    Newcell(newcell::Args),
    /// Show the ranks of file servers, by which replicas are chosen
    #[command(visible_alias = "gp")]
    Getserverprefs(getserverprefs::Args),
    /// Set the ranks of file servers, until the mounts end
    #[command(visible_alias = "sp")]
    Setserverprefs(setserverprefs::Args),
    /// Show what @sys in names stands for
    Sysname(sysname::Args),
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line; status 2 if a path or value was invalid.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::Listacl(args) => args.run(json),
            Command::Access(args) => args.run(json),
            Command::Setacl(args) => args.run(),
            Command::Copyacl(args) => args.run(),
            Command::Cleanacl(args) => args.run(json),
            Command::Listquota(args) => args.run(json),
            Command::Quota(args) => args.run(json),
            Command::Setquota(args) => args.run(),
            Command::Setvol(args) => args.run(),
            Command::Examine(args) => args.run(json),
            Command::Explain(args) => args.run(json),
            Command::Diskfree(args) => args.run(json),
            Command::Whereis(args) => args.run(json),
            Command::Whichcell(args) => args.run(json),
            Command::Getfid(args) => args.run(json),
            Command::Lsmount(args) => args.run(json),
            Command::Mkmount(args) => args.run(),
            Command::Rmmount(args) => args.run(),
            Command::Snapshots(args) => args.run(json),
            Command::Flush(args) => args.run(),
            Command::Flushvolume(args) => args.run(),
            Command::Flushall(args) => args.run(),
            Command::Checkvolumes(args) => args.run(),
            Command::Checkservers(args) => args.run(json),
            Command::Getcacheparms(args) => args.run(json),
            Command::Getcalleraccess(args) => args.run(json),
            Command::Listcells(args) => args.run(json),
            Command::Newcell(args) => args.run(json),
            Command::Getserverprefs(args) => args.run(json),
            Command::Setserverprefs(args) => args.run(json),
            Command::Sysname(args) => args.run(json),
            Command::Bypass(args) => args.run(json),
            Command::Pin(args) => args.run(),
            Command::Unpin(args) => args.run(),
            Command::Pins(args) => args.run(json),
            Command::Property(args) => args.run(json),
            Command::Recover(args) => args.run(json),
            Command::Wscell(args) => args.run(json),
        }
    }
}
