//! `andrew vos rename`, `setfields`, `setpath`, `setleases`, `setmodes`, `lock`, `unlock` and `size`: commands on one volume, found by its entry.

use super::ops::Ops;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::{Admin, AdminResult, Fields};
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::{DataRoute, Lending, Modes};
use serde::Serialize;
use std::fmt;

/// Argument for a volume.
#[derive(clap::Args, Debug)]
pub struct VolumeArg {
    /// The volume's name or number
    #[arg(value_name = "NAME", required_unless_present = "id")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    id: Option<String>,
}

/// Options of `andrew vos rename`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Mount points name volumes: those with the old name find no volume afterwards.

Examples:
  andrew vos rename projects projects-2025")]
pub struct RenameArgs {
    /// The old name
    #[arg(value_name = "OLD", required_unless_present = "oldname")]
    bare_old: Option<String>,
    /// The new name
    #[arg(value_name = "NEW", required_unless_present = "newname")]
    bare_new: Option<String>,
    /// The old name, as OpenAFS's vos takes it
    #[arg(long, value_name = "OLD", conflicts_with = "bare_old")]
    oldname: Option<String>,
    /// The new name, as OpenAFS's vos takes it
    #[arg(long, value_name = "NEW", conflicts_with = "bare_new")]
    newname: Option<String>,
}

/// Options of `andrew vos swap`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
What is mounted as one of the names is the other volume from then on, on every machine; no name is missing meanwhile.

Examples:
  andrew vos swap home.ann home.ann.restored")]
pub struct SwapArgs {
    /// Name or number of a volume
    #[arg(value_name = "VOLUME")]
    one: String,
    /// Name or number of the other one
    #[arg(value_name = "OTHER")]
    other: String,
}

/// Options of `andrew vos setfields`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos setfields projects -maxquota 5000000")]
pub struct SetArgs {
    #[command(flatten)]
    of: VolumeArg,
    /// Quota in units of 1024 bytes; 0 is no limit
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(i32).range(0..))]
    maxquota: Option<i32>,
    /// Set the count of today's accesses to 0
    #[arg(long)]
    clearuse: bool,
    /// Set the counter of changes to 0
    #[arg(long = "clearVolUpCounter")]
    clear_update_counter: bool,
}

/// Options of `andrew vos setpath`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Paths:
  sad      by calls alone
  sid      by calls, and by the data path of the file server (the default)
  netscsi  the same, and from and to the drives of the volume, each transfer commanded by the file server
  nasd     the same, and at the drives of the volume themselves, or in its bucket, for clients that can

Whatever is set, a client that cannot go one way goes another, and programs do not notice.
A move, release or copy takes the setting along; what is restored from a dump has the default.

Examples:
  andrew vos setpath projects nasd")]
pub struct PathArgs {
    /// The volume's name or number
    #[arg(value_name = "NAME")]
    volume: String,
    /// Where the bytes of its files may be read and stored
    #[arg(value_name = "PATH", value_parser = ["sad", "sid", "netscsi", "nasd"])]
    path: String,
}

/// Options of `andrew vos setleases`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
With on, the default, mounts with --lease may decide changes of names and small files in directories that they alone change, and send
them within a second. With off, no mount does so in this volume: what a close has acknowledged is at the server, whatever the
options of the mount. Leases that are held are returned first, with all that was decided under them; nothing is lost.
A move, release or copy takes the setting along; what is restored from a dump has the default.

Examples:
  andrew vos setleases databases off")]
pub struct LeasesArgs {
    /// The volume's name or number
    #[arg(value_name = "NAME")]
    volume: String,
    /// Whether its directories may be leased
    #[arg(value_name = "LEASES", value_parser = ["on", "off"])]
    leases: String,
}

/// Options of `andrew vos setmodes`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
With close, a directory that is given a mode without rights for group and others (`chmod go-rwx`, `mkdir` under umask 077), by a user
who may change its access list, loses system:anyuser and system:authuser from that list. No mode adds anybody. With ignored, the
default, access lists alone decide, as in AFS. `andrew user add` makes homes with close.
A move, release or copy takes the setting along; what is restored from a dump has the default.

Examples:
  andrew vos setmodes home.alice close
  andrew vos setmodes home.alice")]
pub struct ModesArgs {
    /// The volume's name or number
    #[arg(value_name = "NAME")]
    volume: String,
    /// What modes of directories do [default: show the setting]
    #[arg(value_name = "MODES", value_parser = ["close", "ignored"])]
    modes: Option<String>,
}

/// Options of `andrew vos size`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos size projects\n  andrew vos size projects -time 1795233678")]
pub struct SizeArgs {
    #[command(flatten)]
    of: VolumeArg,
    /// Accepted for scripts
    #[arg(long, hide = true)]
    dump: bool,
    /// Only changes since this date, in seconds since 1970
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    time: u32,
}

#[derive(Serialize)]
struct VolumeChange {
    volume: String,
    done: String,
}

#[derive(Serialize)]
struct Size {
    volume: String,
    #[serde(rename = "dump_bytes")]
    dump_size: u64,
}

impl VolumeArg {
    fn name(self) -> String {
        self.bare.or(self.id).unwrap_or_default()
    }

    /// Locks or unlocks the entry.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::lock`] and [`afs_admin::Admin::unlock`].
    pub fn lock(self, ops: &Ops, json: bool, locked: bool) -> CommandResult {
        let done = if locked { "locked" } else { "unlocked" };
        changed(ops, json, self.name(), done, |admin, name| async move {
            if locked { admin.lock(&name).await } else { admin.unlock(&name).await }
        })
    }
}

impl RenameArgs {
    /// Renames the group.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::rename`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let old = self.bare_old.or(self.oldname).unwrap_or_default();
        let new = self.bare_new.or(self.newname).unwrap_or_default();
        let (from, to) = (old.clone(), new.clone());
        ops.run(|admin| async move { admin.rename(&from, &to).await })?;
        shown(json, old, format!("renamed to {new}"))
    }
}

impl SwapArgs {
    /// Exchanges the names.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::swap`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (one, other) = (self.one.clone(), self.other.clone());
        ops.run(|admin| async move { admin.swap(&one, &other).await })?;
        shown(json, self.one, format!("has exchanged names with {}", self.other))
    }
}

impl SetArgs {
    /// Sets the fields.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::set_fields`]; no field was given.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let fields = Fields {
            quota: self.maxquota,
            clear_use: self.clearuse,
            clear_update_counter: self.clear_update_counter,
        };
        if fields == Fields::default() {
            return Err(CommandError::usage(
                "vos: give at least one field to set; see `andrew vos setfields --help`",
            ));
        }
        changed(ops, json, self.of.name(), "set", |admin, name| async move {
            admin.set_fields(&name, fields).await
        })
    }
}

impl PathArgs {
    /// Sets the ways for bytes.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::set_route`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let route = DataRoute::of_name(&self.path).unwrap_or_default();
        changed(ops, json, self.volume, format!("set to {route}"), |admin, name| async move {
            admin.set_route(&name, route).await
        })
    }
}

impl LeasesArgs {
    /// Allows or forbids leases.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::set_lending`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let lending = Lending::of_name(&self.leases).unwrap_or_default();
        changed(ops, json, self.volume, format!("set to leases {lending}"), |admin, name| async move {
            admin.set_lending(&name, lending).await
        })
    }
}

impl ModesArgs {
    /// Sets or shows what modes of directories do.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::set_modes`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let Some(modes) = self.modes else {
            let name = self.volume.clone();
            let modes = ops.run(|admin| async move { admin.modes(&name).await })?;
            return shown(json, self.volume, format!("has modes {modes}"));
        };
        let modes = Modes::of_name(&modes).unwrap_or_default();
        changed(ops, json, self.volume, format!("set to modes {modes}"), |admin, name| async move {
            admin.set_modes(&name, modes).await
        })
    }
}

impl SizeArgs {
    /// Prints the size of a dump.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::size`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (volume, since) = (self.of.name(), UnixSeconds(self.time));
        let name = volume.clone();
        let dump_size = ops.run(|admin| async move { admin.size_of(&name, since).await })?;
        output::show(json, &Size { volume, dump_size });
        Ok(())
    }
}

/// Runs an operation on a volume, and shows what it did.
///
/// # Errors
/// Those of the operation.
pub(super) fn changed<T, F: Future<Output = AdminResult<T>>>(
    ops: &Ops,
    json: bool,
    volume: String,
    done: impl Into<String>,
    work: impl FnOnce(Admin, String) -> F,
) -> CommandResult {
    let name = volume.clone();
    ops.run(|admin| work(admin, name))?;
    shown(json, volume, done)
}

fn shown(json: bool, volume: String, done: impl Into<String>) -> CommandResult {
    output::show(json, &VolumeChange { volume, done: done.into() });
    Ok(())
}

impl fmt::Display for VolumeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} {}", self.volume, self.done)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume: {}\ndump_size: {}", self.volume, self.dump_size)
    }
}
