//! Sources of new keys: made here, or read from a file of OpenAFS or Kerberos.

use crate::commands::serve::new_system;
use crate::error::{CommandError, CommandResult};
use afs_auth::keys::{KeyError, KeyKind, KeyRing};
use afs_cell::key_store::{add_rxgk, add_rxkad};
use afs_files::secret_file;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct KeySource {
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

/// Parser of one format of key files.
type ReadKeys = fn(&[u8]) -> Result<KeyRing, KeyError>;

impl KeySource {
    /// A new key for rxgk.
    pub(super) fn of_rxgk() -> Self {
        Self { rxgk: true, rxkad: false, keytab: None, key_file_ext: None, key_file: None }
    }

    /// The kind of keys that are made here; `None` for those of a file.
    pub(super) fn kind(&self) -> Option<KeyKind> {
        match (self.rxgk, self.rxkad) {
            (true, _) => Some(KeyKind::Rxgk),
            (_, true) => Some(KeyKind::RxkadKrb5),
            _ => None,
        }
    }

    /// The keys alone, with numbers that fit behind those of a ring.
    pub(super) fn new_keys(&self, there: &KeyRing) -> CommandResult<KeyRing> {
        let mut all = there.clone();
        self.add_to(&mut all)?;
        let mut new = KeyRing::default();
        let added = all.iter().filter(|key| !there.iter().any(|other| other == *key));
        added.cloned().try_for_each(|key| new.add(key)).map_err(CommandError::failed)?;
        Ok(new)
    }

    /// Adds the keys to those that a ring uses.
    pub(super) fn add_to(&self, keys: &mut KeyRing) -> CommandResult {
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
