//! `andrew key`: the keys shared by a cell's servers.

use crate::commands::serve::new_system;
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::running_cells;
use afs_auth::keys::{KeyError, KeyKind, KeyRing};
use afs_cell::control::{ControlClient, ControlReply, ControlRequest};
use afs_cell::key_store::{KeyStore, add_rxgk, add_rxkad};
use afs_cell::state::StateDir;
use afs_files::secret_file;
use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew key`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Anyone who has a key of the cell can act as any user: keep the file as secret as everything in the cell.
Its format is that of OpenAFS's KeyFileExt, so that OpenAFS's tools work with -localauth if it is in their configuration.

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
    /// Add a key; the running cell uses it at once
    Add(KeySource),
    /// Remove a key: tokens sealed with it are refused from then on
    Remove(KeyChoice),
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct KeySource {
    /// Make a new key for rxgk, the security class of Andrew's clients
    #[arg(long)]
    rxgk: bool,
    /// Make a new key for rxkad, the security class of OpenAFS's clients and tools
    #[arg(long)]
    rxkad: bool,
    /// Import the keys of afs and afs/CELL from a Kerberos keytab
    #[arg(long, value_name = "FILE")]
    keytab: Option<PathBuf>,
    /// Import the keys from an OpenAFS server's KeyFileExt
    #[arg(long, value_name = "FILE")]
    key_file_ext: Option<PathBuf>,
    /// Import the DES keys from an OpenAFS server's KeyFile
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
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
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// A file cannot be read or is not safe, or a key does not exist.
    pub fn run(self, json: bool) -> CommandResult {
        let state = running_cells::of_process(self.state.as_deref())?;
        let store = KeyStore::of(state.path());
        let mut keys = store.load()?;
        match self.command {
            Command::List => {}
            Command::Add(source) => source.add_to(&mut keys)?,
            Command::Remove(which) => which.remove_from(&mut keys)?,
        }
        if keys != store.load()? {
            store.save(&keys)?;
            reload(&state)?;
        }
        output::show(json, &Listed::of(store.path(), &keys));
        Ok(())
    }
}

/// Makes the cell that runs on a state directory, if there is one, reload its keys and settings.
pub(crate) fn reload(state: &StateDir) -> CommandResult {
    if state.running()?.is_none() {
        return Ok(());
    }
    let failed = |e: &dyn fmt::Display| {
        CommandError::failed(format!("the running cell still uses the old keys: {e}; restart it"))
    };
    match ControlClient::of(state)?.ask(&ControlRequest::Reload) {
        Ok(ControlReply::Done(_)) => Ok(()),
        Ok(ControlReply::Refused(line)) => Err(failed(&line)),
        Ok(ControlReply::Aborted(code)) => Err(failed(&code)),
        Err(error) => Err(failed(&error)),
    }
}

/// Parser of one format of key files.
type ReadKeys = fn(&[u8]) -> Result<KeyRing, KeyError>;

impl KeySource {
    fn add_to(&self, keys: &mut KeyRing) -> CommandResult {
        if self.rxgk || self.rxkad {
            let system = new_system()?;
            let env = system.env();
            let made = if self.rxgk { add_rxgk(keys, &env) } else { add_rxkad(keys, &env) };
            made?;
            return Ok(());
        }
        let readers: [(&Option<PathBuf>, ReadKeys); 3] = [
            (&self.keytab, KeyRing::from_keytab),
            (&self.key_file_ext, KeyRing::from_key_file_ext),
            (&self.key_file, KeyRing::from_key_file),
        ];
        let Some((path, read)) = readers.into_iter().find_map(|(p, read)| Some((p.as_deref()?, read))) else {
            return Ok(());
        };
        keys.merge(&from_file(path, read)?).map_err(CommandError::failed)
    }
}

fn from_file(path: &Path, read: ReadKeys) -> CommandResult<KeyRing> {
    let shown = path.display();
    let bytes = secret_file::read(path)?
        .ok_or_else(|| CommandError::usage(format!("{shown} does not exist; name a file with keys")))?;
    let keys = read(&bytes).map_err(|e| CommandError::usage(format!("{shown}: {e}")))?;
    if keys.is_empty() {
        return Err(CommandError::usage(format!("{shown} has no key of afs or afs/CELL")));
    }
    Ok(keys)
}

impl KeyChoice {
    fn remove_from(&self, keys: &mut KeyRing) -> CommandResult {
        let kind = match self.kind {
            Kind::Rxgk => KeyKind::Rxgk,
            Kind::Rxkad => KeyKind::RxkadKrb5,
            Kind::RxkadDes => KeyKind::RxkadDes,
        };
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
        let row = |key: &afs_auth::keys::CellKey| Row {
            kind: match key.kind {
                KeyKind::Rxgk => "rxgk",
                KeyKind::RxkadKrb5 => "rxkad",
                KeyKind::RxkadDes => "rxkad-des",
            },
            kvno: key.kvno,
            enctype: key.enctype,
        };
        Self { file: path.to_owned(), keys: keys.iter().map(row).collect() }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys.is_empty() {
            return writeln!(f, "no keys yet: they are made when the cell is first started");
        }
        writeln!(f, "{}", self.file.display())?;
        for Row { kind, kvno, enctype } in &self.keys {
            writeln!(f, "  {kind:9} number {kvno:3}  encryption type {enctype}")?;
        }
        Ok(())
    }
}
