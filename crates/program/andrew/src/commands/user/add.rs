//! `andrew user add`: a user, and a volume that is the user's alone, mounted.

use crate::commands::fs::mkmount::mount_volume;
use crate::commands::fs::path_cell;
use crate::commands::pts::names;
use crate::commands::pts::route::{self, Target, refused};
use crate::commands::vos::ops::Ops;
use crate::commands::vos::route_options::RouteOptions;
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::running_cells;
use afs_admin::{CreateOptions, HomeOwner, ServerPartition};
use afs_cell::state::StateDir;
use afs_cell::tokens::{CellLocation, Mounts};
use afs_wire::ids::{ViceId, VolumeId};
use afs_wire::pt::{EntryKind, NewEntry};
use afs_wire::vol::Modes;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Options of `andrew user add`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Makes the user, the volume home.NAME, and the mount point HOME. In the home the user and administrators have all rights, and nobody
else has any; the user gives rights to others with `andrew fs setacl`. Modes close its directories (`andrew vos setmodes`): what is
made or changed to a mode without rights for others is the owner's alone. Servers make a snapshot of it each day.

Examples:
  andrew user add alice
  andrew user add alice ~/afs/alice --quota 5000000
  andrew user add bob /afs/.example.org/home/bob --server 192.0.2.7 --partition a")]
pub struct Args {
    /// The user's name
    name: String,
    /// The mount point of the home, in a mount [default: home/NAME in your only mount]
    #[arg(value_name = "HOME")]
    home: Option<PathBuf>,
    /// Quota of the home in units of 1024 bytes; 0 is no limit
    #[arg(long, value_name = "KIB", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    quota: i32,
    /// File server of the home [default: the one that runs here, or the cell's only one]
    #[arg(long, value_name = "HOST")]
    server: Option<String>,
    /// Partition of the home [default: a, or the cell's only one]
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// State directory of the cell, if it runs here [default: $ANDREW_STATE, or that of the cell that HOME is in]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

/// The port of file servers, which commands take unless one is given.
const DEFAULT_PORT: u16 = 7000;

#[derive(Serialize)]
struct Added {
    user: String,
    id: i32,
    #[serde(serialize_with = "crate::output::path")]
    home: PathBuf,
    volume: String,
    #[serde(rename = "volume_id")]
    volume_number: u32,
    cell: String,
    servers: Vec<Ipv4Addr>,
    base_port: u16,
    server: Ipv4Addr,
    partition: String,
}

impl Args {
    /// Adds the user and the home.
    ///
    /// # Errors
    /// A name or path that is taken or invalid, a path outside of mounts, or a refusal of a server; what was made before stays.
    pub fn run(self, json: bool) -> CommandResult {
        let (home, parent) = self.place_of_home()?;
        let place = path_cell::of(&parent)?.ok_or_else(|| not_in_afs(&parent))?;
        let own = self.own_cell(&place)?;
        let route =
            own.as_ref().map_or_else(|| RouteOptions::of(&place), |own| RouteOptions::of_state(own.path()));
        let ops = Ops::open(&route, json)?;
        let at = ops.needed_place(self.server.as_deref(), self.partition.as_deref())?;
        let mut target = route::RouteOptions::of(&place, own.as_ref()).open()?;
        let owner =
            HomeOwner { id: add_user(&mut target, &self.name)?, name: self.name.to_ascii_lowercase() };
        let id = owner.id.0;
        let volume = format!("home.{}", owner.name);
        let number = make_volume(&ops, &volume, at, self.quota, owner)?;
        mount_volume(&home, &volume)?;
        output::show(
            json,
            &Added {
                user: self.name,
                id,
                home,
                volume,
                volume_number: number.0,
                cell: place.cell.to_string(),
                servers: place.servers,
                base_port: place.base_port,
                server: at.server,
                partition: at.partition.check().map_or_else(String::new, |partition| partition.to_string()),
            },
        );
        Ok(())
    }

    /// The state directory of the cell, if it runs here: then its owner adds the user, else one with a token.
    fn own_cell(&self, place: &CellLocation) -> CommandResult<Option<StateDir>> {
        if StateDir::is_given(self.state.as_deref()) {
            return Ok(Some(StateDir::resolve(self.state.as_deref())?));
        }
        Ok(running_cells::serving(place)?.map(|own| own.state))
    }

    /// The mount point, which does not exist, and its directory, which does.
    fn place_of_home(&self) -> CommandResult<(PathBuf, PathBuf)> {
        let home = match &self.home {
            Some(home) => std::path::absolute(home).unwrap_or_else(|_| home.clone()),
            None => only_mount()?.join("home").join(&self.name),
        };
        let shown = home.display();
        if home.symlink_metadata().is_ok() {
            return Err(CommandError::usage(format!("user: '{shown}' exists; give a path that does not")));
        }
        let parent = home.parent().map(Path::to_owned);
        let parent =
            parent.ok_or_else(|| CommandError::usage(format!("user: '{shown}' is no path of a home")))?;
        if self.home.is_none() && !parent.exists() {
            std::fs::create_dir(&parent).map_err(|error| {
                let shown = parent.display();
                CommandError::failed(format!(
                    "user: cannot make '{shown}': {error}; give the path of the home"
                ))
            })?;
        }
        Ok((home, parent))
    }
}

/// Makes the volume, and gives it to its owner before anybody can find it.
fn make_volume(
    ops: &Ops,
    volume: &str,
    place: ServerPartition,
    quota: i32,
    owner: HomeOwner,
) -> CommandResult<VolumeId> {
    let options = CreateOptions { name: volume.to_owned(), place, quota, id: None };
    let name = volume.to_owned();
    ops.run(|admin| async move {
        let id = admin.create(options).await?;
        admin.give_home(place.server, id, &owner).await?;
        admin.set_modes(&name, Modes::Close).await?;
        Ok(id)
    })
}

/// One that exists is taken as it is: its home is added.
fn add_user(target: &mut Target, name: &str) -> CommandResult<ViceId> {
    if let Ok(known) = names::find(target, name)
        && name.parse::<i32>().is_err()
    {
        return Ok(known.id);
    }
    let request = NewEntry { name: names::text(name)?, kind: EntryKind::USER, owner: ViceId(0) };
    let made = target
        .call(&request)
        .map_err(|failure| refused(failure, &format!("unable to create user {name}")))?;
    Ok(made.id)
}

fn only_mount() -> CommandResult<PathBuf> {
    let told = Mounts::running().activities(false);
    let mut all: Vec<PathBuf> =
        told.into_iter().filter_map(|(cell, _)| Some(cell.mount?.directory)).collect();
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => Err(CommandError::failed(
            "user: no mount runs here that you may ask; `andrew up` or `andrew mount` makes one",
        )),
        _ => Err(CommandError::usage("user: there are several mounts; give the path of the home")),
    }
}

fn not_in_afs(parent: &Path) -> CommandError {
    let shown = parent.display();
    CommandError::usage(format!(
        "user: '{shown}' is not in AFS; give a path in a mount (`andrew status` shows those there are)"
    ))
}

impl fmt::Display for Added {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Added { user, id, home, volume, cell, servers, base_port, server, partition, .. } = self;
        let home = home.display();
        let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
        let mut servers = servers.join(",");
        if *base_port != DEFAULT_PORT {
            servers.push_str(&format!(" --base-port {base_port}"));
        }
        writeln!(f, "User {user} has id {id}, and the home {home}:")?;
        writeln!(f, "volume {volume} on {server} {partition}, for {user} and administrators alone\n")?;
        writeln!(f, "To log in {user} needs a passphrase or an SSH key:")?;
        writeln!(f, "  andrew passwd {user}")?;
        writeln!(f, "  andrew ssh-keys add --user {user} KEY.pub\n")?;
        writeln!(f, "Then {user} types:")?;
        writeln!(f, "  andrew mount --cell {cell} --servers {servers} ~/afs --detach")?;
        writeln!(f, "  andrew login {user}")
    }
}
