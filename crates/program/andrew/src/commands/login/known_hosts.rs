//! File of known login host keys: `~/.config/andrew/known_hosts`, a cell and a key in each line.

use crate::error::{CommandError, CommandResult};
use afs_cell::state::home;
use afs_files::secret_file;
use afs_login::HostKey;
use afs_wire::ids::CellName;
use std::fs;
use std::io;
use std::path::PathBuf;

/// Path of the file.
pub(super) struct KnownHosts(PathBuf);

impl KnownHosts {
    /// The user's file: `andrew/known_hosts` in `$XDG_CONFIG_HOME`, by default `~/.config`.
    ///
    /// # Errors
    /// There is no home directory.
    pub(super) fn current() -> CommandResult<Self> {
        let set = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let config = set.or_else(|| home().map(|home| home.join(".config")));
        let config = config.ok_or_else(|| CommandError::usage("there is no home directory; set HOME"))?;
        Ok(Self(config.join("andrew/known_hosts")))
    }

    /// The known key of a cell.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn get(&self, cell: &CellName) -> CommandResult<Option<HostKey>> {
        let text = self.text()?;
        Ok(text
            .lines()
            .find_map(|line| line.split_once(' ').filter(|(of, _)| *of == cell.as_str()).and_then(key)))
    }

    /// Records a key for a cell, in place of an earlier one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set(&self, cell: &CellName, key: &HostKey) -> CommandResult {
        let text = self.text()?;
        let others = text.lines().filter(|line| line.split(' ').next() != Some(cell.as_str()));
        let hex: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let lines: Vec<String> = others.map(str::to_owned).chain([format!("{cell} {hex}")]).collect();
        Ok(secret_file::write(&self.0, (lines.join("\n") + "\n").as_bytes())?)
    }

    fn text(&self) -> CommandResult<String> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(e) => Err(CommandError::failed(format!("cannot read {}: {e}", self.0.display()))),
        }
    }
}

fn key((_, hex): (&str, &str)) -> Option<HostKey> {
    let digits = hex.trim().as_bytes();
    let mut key = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(HostKey(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_known_by_cell_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let known = KnownHosts(dir.path().join("andrew/known_hosts"));
        let (one, two) = (CellName::new("example.org").unwrap(), CellName::new("example.com").unwrap());
        assert_eq!(known.get(&one).unwrap(), None);
        known.set(&one, &HostKey([1; 32])).unwrap();
        known.set(&two, &HostKey([2; 32])).unwrap();
        known.set(&one, &HostKey([3; 32])).unwrap();
        assert_eq!(known.get(&one).unwrap(), Some(HostKey([3; 32])));
        assert_eq!(known.get(&two).unwrap(), Some(HostKey([2; 32])));
    }
}
