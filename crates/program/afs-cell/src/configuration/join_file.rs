//! Join file: configuration and keys for a new host of a cell, in one file that has to be kept secret like the keys.

use crate::configuration::FileError;
use crate::configuration::key_store::KeyStore;
use crate::configuration::options::{RoleName, Roles};
use crate::configuration::server_file::{DatabaseTable, FILE, ServerFile};
use crate::error::CellResult;
use crate::servers::LOGIN_SECRET;
use afs_files::{Syntax, Versioned, secret_file, write_durably};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// Directory of the etcd certificates and password in the state directory.
const ETCD: &str = "etcd";
const FORMAT: u32 = 1;

/// Contents of a join file. Wiped from memory when it is dropped.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinFile {
    format: u32,
    /// Configuration of the new host.
    server: ServerFile,
    /// Files for its state directory, by name, in base64.
    files: BTreeMap<String, String>,
}

impl Versioned for JoinFile {
    const SYNTAX: Syntax = Syntax::Toml;
    const IS_SECRET: bool = true;
    const COMMENT: &'static str = "# Makes one host a server of the cell: andrew serve --join THIS-FILE\n# It holds the keys of the cell. Remove it when the host is one.\n";
    const REMEDY: &'static str = "make another with `andrew server add` on a server of the cell";
}

impl Drop for JoinFile {
    fn drop(&mut self) {
        self.files.values_mut().for_each(Zeroize::zeroize);
    }
}

/// Address and roles of a new host.
pub struct NewServer {
    /// Its address.
    pub listen: Ipv4Addr,
    /// Its roles.
    pub roles: Roles,
}

impl JoinFile {
    /// Makes the join file for a new host of the cell that is served from `state` with the configuration `here`.
    ///
    /// # Errors
    /// The new host is to serve databases that are in this host's state directory, or a file cannot be read.
    pub fn of(state: &Path, here: &ServerFile, new: &NewServer) -> CellResult<Self> {
        let mut server = here.of_another(new.listen, new.roles)?;
        let mut files = BTreeMap::new();
        let keys = here.key_file.clone().unwrap_or_else(|| KeyStore::of(state).path().to_owned());
        take(&mut files, "keys/KeyFileExt", &keys)?;
        if new.roles.has(RoleName::Database) {
            take(&mut files, LOGIN_SECRET, &state.join(LOGIN_SECRET))?;
            if let Some(DatabaseTable::Etcd(table)) = &mut server.database {
                for (number, file) in table.files().enumerate() {
                    let name = format!("{ETCD}/{number}");
                    take(&mut files, &name, file)?;
                    *file = PathBuf::from(name);
                }
            }
        }
        Ok(JoinFile { format: FORMAT, server, files })
    }

    /// Encodes the file.
    ///
    /// # Errors
    /// None for a file made by [`JoinFile::of`].
    pub fn to_text(&self) -> CellResult<Zeroizing<String>> {
        Ok(self.encode().map_err(FileError::Text)?)
    }

    /// Reads a file, which must be readable by its owner alone.
    ///
    /// # Errors
    /// The file does not exist, others may read it, or it is invalid.
    pub fn read(path: &Path) -> CellResult<Self> {
        Self::read_file(path)?.ok_or_else(|| FileError::NoJoinFile(path.to_owned()).into())
    }

    /// Writes the contained files into a state directory that is not in use. Returns the path of the configuration.
    ///
    /// # Errors
    /// The directory belongs to a server already, or the disk refuses a write.
    pub fn unpack(&self, state: &Path) -> CellResult<PathBuf> {
        let config = Self::config(state);
        if KeyStore::of(state).path().exists() || state.join("cell.json").exists() {
            return Err(FileError::OfAServer { state: state.to_owned(), config }.into());
        }
        for (name, text) in &self.files {
            if !is_ours(name) {
                return Err(FileError::NotOfJoinFile(name.clone()).into());
            }
            let bytes = STANDARD
                .decode(text)
                .map(Zeroizing::new)
                .map_err(|error| FileError::Base64 { name: name.clone(), error })?;
            secret_file::write(&state.join(name), &bytes)?;
        }
        let text =
            toml::to_string(&self.server).map_err(|error| FileError::Text(std::io::Error::other(error)))?;
        write_durably(state, FILE, text.as_bytes())
            .map_err(|error| FileError::Write { path: config.clone(), error })?;
        Ok(config)
    }

    /// Path of the configuration of a host that was joined.
    #[must_use]
    pub fn config(state: &Path) -> PathBuf {
        state.join(FILE)
    }
}

/// Whether a join file may write this name into a state directory.
fn is_ours(name: &str) -> bool {
    let of_etcd = name.strip_prefix(ETCD).and_then(|rest| rest.strip_prefix('/'));
    name == "keys/KeyFileExt"
        || name == LOGIN_SECRET
        || of_etcd.is_some_and(|rest| rest.parse::<u8>().is_ok())
}

fn take(files: &mut BTreeMap<String, String>, name: &str, from: &Path) -> CellResult {
    // Certificates are no secrets, so their modes are not checked.
    let bytes = std::fs::read(from).map(Zeroizing::new);
    let bytes = bytes.map_err(|error| FileError::Read { path: from.to_owned(), error })?;
    files.insert(name.to_owned(), STANDARD.encode(&*bytes));
    Ok(())
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(bytes: &[u8]) -> bool {
    let Ok(file) = JoinFile::decode(Path::new("join"), bytes) else { return false };
    assert!(file.files.keys().filter(|name| is_ours(name)).all(|name| !name.contains("..")));
    if let Ok(text) = file.to_text() {
        assert!(JoinFile::decode(Path::new("join"), text.as_bytes()).is_ok(), "what was read can be written");
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_host_gets_what_it_needs_and_nothing_is_overwritten() {
        let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        secret_file::write(&old.path().join("keys/KeyFileExt"), b"keys").unwrap();
        secret_file::write(&old.path().join(LOGIN_SECRET), b"secret").unwrap();
        secret_file::write(&old.path().join("pw"), b"sesame").unwrap();
        let config = format!(
            "cell = \"example.org\"\nlisten = \"192.0.2.1\"\n[database]\nkind = \"etcd\"\nendpoints = [\"http://192.0.2.1:2379\"]\nuser = \"andrew\"\npassword_file = \"{}\"\n",
            old.path().join("pw").display()
        );
        let path = old.path().join("server.toml");
        std::fs::write(&path, config).unwrap();
        let here = ServerFile::read(&path).unwrap();
        let server = NewServer { listen: Ipv4Addr::new(192, 0, 2, 2), roles: Roles::ALL };
        let text = JoinFile::of(old.path(), &here, &server).unwrap().to_text().unwrap();
        let join = new.path().join("join.toml");
        secret_file::write(&join, text.as_bytes()).unwrap();
        let state = new.path().join("state");
        std::fs::create_dir(&state).unwrap();
        let config = JoinFile::read(&join).unwrap().unpack(&state).unwrap();
        let there = ServerFile::read(&config).unwrap();
        assert_eq!((there.listen, there.cell), (Ipv4Addr::new(192, 0, 2, 2), here.cell));
        assert_eq!(there.database_servers, [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)]);
        assert_eq!(std::fs::read(state.join(LOGIN_SECRET)).unwrap(), b"secret");
        assert_eq!(std::fs::read(state.join("etcd/0")).unwrap(), b"sesame");
        let again = JoinFile::read(&join).unwrap().unpack(&state).unwrap_err();
        assert!(again.to_string().contains("already"), "{again}");
        assert!(!is_ours("../x") && !is_ours("etcd/../x") && !is_ours("/etc/passwd"));
    }
}
