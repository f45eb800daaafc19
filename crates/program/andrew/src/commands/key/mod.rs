//! `andrew key`: the keys shared by a cell's servers.

mod cell_wide;
mod sources;

use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::running_cells;
use afs_auth::keys::{CellKey, KeyKind, KeyRing};
use afs_cell::key_store::KeyStore;
use afs_cell::state::StateDir;
use cell_wide::CellWide;
use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use sources::KeySource;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Options of `andrew key`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Anyone who has a key of the cell can act as any user: keep the file as secret as everything in the cell.
Its format is that of OpenAFS's KeyFileExt, so that OpenAFS's tools work with -localauth if it is in their configuration.

While the cell runs, a new key is first given to every server, and used when all have it: no token is refused meanwhile. What was begun
and could not be ended is ended by the same command again; until then the servers go on with the keys of before.

Examples:
  andrew key list
  andrew key add --rxkad                       for OpenAFS's tools and clients; rxkad is weak
  andrew key add --keytab rxkad.keytab         the cell's key in a Kerberos realm
  andrew key add --rxgk                        a new key for tokens; tokens of the old key are valid until that is removed"
)]
pub struct Args {
    /// State directory of the cell [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the types and numbers of the keys, not their values
    List,
    /// Add a key: every server gets it, then all use it
    Add {
        #[command(flatten)]
        source: KeySource,
        #[command(flatten)]
        servers: ServerChoice,
    },
    /// Make a new key for rxgk, and remove those before the last one
    Rotate {
        /// Only if the keys were last changed this many days ago
        #[arg(long, value_name = "DAYS")]
        older_than: Option<u64>,
        #[command(flatten)]
        servers: ServerChoice,
    },
    /// Remove a key: tokens sealed with it are refused from then on
    Remove {
        #[command(flatten)]
        key: KeyChoice,
        #[command(flatten)]
        servers: ServerChoice,
    },
    /// Forget a key that was given to servers and is not used yet
    Forget {
        #[command(flatten)]
        key: KeyChoice,
        #[command(flatten)]
        servers: ServerChoice,
    },
}

#[derive(clap::Args, Debug)]
struct ServerChoice {
    /// Leave out this server of the cell, by its address; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    without: Vec<Ipv4Addr>,
}

#[derive(clap::Args, Debug)]
struct KeyChoice {
    /// Security class of the key
    #[arg(long)]
    kind: Kind,
    /// Number of the key
    #[arg(long, value_name = "N")]
    kvno: u32,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Rxgk,
    Rxkad,
    RxkadDes,
}

#[derive(Serialize)]
struct Listed {
    #[serde(serialize_with = "crate::output::path")]
    file: PathBuf,
    keys: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    kvno: u32,
    enctype: i32,
    /// Whether it waits for every server to have it.
    coming: bool,
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// A file cannot be read or is not safe, or a key does not exist.
    pub fn run(self, json: bool) -> CommandResult {
        let state = running_cells::of_process(self.state.as_deref())?;
        let running = state.running()?;
        let file = running.as_ref().and_then(|running| running.key_file.clone());
        let store = file.map_or_else(|| KeyStore::of(state.path()), |file| KeyStore::at(&file));
        let before = store.load()?;
        match (&self.command, running.is_some()) {
            (Command::List, _) => {}
            (command, true) => command.change_cell(&state, &store, &before)?,
            (command, false) => {
                let mut keys = before.clone();
                command.change_file(&mut keys)?;
                if keys != before {
                    store.save(&keys)?;
                }
            }
        }
        output::show(json, &Listed::of(store.path(), &store.load()?));
        Ok(())
    }
}

impl Command {
    /// Changes the keys of a host whose cell does not run.
    fn change_file(&self, keys: &mut KeyRing) -> CommandResult {
        match self {
            Command::List => Ok(()),
            Command::Add { source, .. } => source.add_to(keys),
            Command::Remove { key, .. } => key.remove_from(keys),
            Command::Forget { key, .. } => {
                keys.drop_coming(|other| key.is(other));
                Ok(())
            }
            Command::Rotate { .. } => {
                Err(CommandError::usage("the cell does not run; start it, so that all servers get the key"))
            }
        }
    }

    /// Changes the keys of all servers.
    fn change_cell(&self, state: &StateDir, store: &KeyStore, keys: &KeyRing) -> CommandResult {
        let open = |servers: &ServerChoice| CellWide::open(state, keys, &servers.without);
        match self {
            Command::List => Ok(()),
            Command::Add { source, servers } => {
                let cell = open(servers)?;
                let mut with = cell.unfinished(keys, source.kind())?;
                if with.is_empty() {
                    with = source.new_keys(keys)?;
                }
                cell.spread(&with)
            }
            Command::Rotate { older_than, servers } => {
                if older_than.is_some_and(|days| !is_older(store.path(), days)) {
                    return Ok(());
                }
                let cell = open(servers)?;
                let mut with = cell.unfinished(keys, Some(KeyKind::Rxgk))?;
                if with.is_empty() {
                    with = KeySource::of_rxgk().new_keys(keys)?;
                }
                cell.spread(&with)?;
                cell.remove_before_last(&store.load()?)
            }
            Command::Remove { key, servers } => {
                key.remove_from(&mut keys.clone())?;
                open(servers)?.remove((key.kind(), key.kvno))
            }
            Command::Forget { key, servers } => open(servers)?.forget((key.kind(), key.kvno)),
        }
    }
}

/// Whether a file was last changed so many days ago.
fn is_older(file: &Path, days: u64) -> bool {
    let changed = std::fs::metadata(file).and_then(|data| data.modified()).ok();
    let age = changed.and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
    age.as_secs() >= days.saturating_mul(86_400)
}

impl KeyChoice {
    fn kind(&self) -> KeyKind {
        match self.kind {
            Kind::Rxgk => KeyKind::Rxgk,
            Kind::Rxkad => KeyKind::RxkadKrb5,
            Kind::RxkadDes => KeyKind::RxkadDes,
        }
    }

    fn is(&self, key: &CellKey) -> bool {
        (key.kind, key.kvno) == (self.kind(), self.kvno)
    }

    fn remove_from(&self, keys: &mut KeyRing) -> CommandResult {
        let kind = self.kind();
        let these: Vec<i32> =
            keys.iter().filter(|k| k.kind == kind && k.kvno == self.kvno).map(|k| k.enctype).collect();
        let last = !keys.iter().any(|k| k.kind == KeyKind::Rxgk && (k.kind, k.kvno) != (kind, self.kvno));
        if these.is_empty() {
            return Err(CommandError::usage(format!(
                "there is no {kind} key with number {}; `andrew key list` shows them",
                self.kvno
            )));
        }
        if kind == KeyKind::Rxgk && last {
            return Err(CommandError::usage(format!(
                "key {} is the last one for rxgk; add another first, with `andrew key add --rxgk`",
                self.kvno
            )));
        }
        for enctype in these {
            keys.remove(kind, self.kvno, enctype);
        }
        Ok(())
    }
}

impl Listed {
    fn of(path: &Path, keys: &KeyRing) -> Self {
        let row = |key: &CellKey, coming| Row {
            kind: match key.kind {
                KeyKind::Rxgk => "rxgk",
                KeyKind::RxkadKrb5 => "rxkad",
                KeyKind::RxkadDes => "rxkad-des",
            },
            kvno: key.kvno,
            enctype: key.enctype,
            coming,
        };
        let used = keys.iter().map(|key| row(key, false));
        Self { file: path.to_owned(), keys: used.chain(keys.coming().map(|key| row(key, true))).collect() }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys.is_empty() {
            return writeln!(f, "no keys yet: they are made when the cell is first started");
        }
        writeln!(f, "{}", self.file.display())?;
        for Row { kind, kvno, enctype, coming } in &self.keys {
            let note = if *coming { "  not used yet: not every server has it" } else { "" };
            writeln!(f, "  {kind:9} number {kvno:3}  encryption type {enctype}{note}")?;
        }
        Ok(())
    }
}
