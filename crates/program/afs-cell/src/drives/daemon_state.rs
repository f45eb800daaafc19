//! State file of a drive's daemon: its id, its TLS key, the number of its run, and the key of its file server or the secret of
//! its join key.

use super::DrivesError;
use super::keys::{FIRST_EPOCH, KeyText, first_epoch, is_first_epoch};
use afs_datapath::capability::{DriveId, DriveKey, KeyEpoch, Secret};
use afs_datapath::session::Identity;
use afs_env::{Env, EnvExt};
use afs_files::{Syntax, Versioned};
use afs_remote::{RUN_MAX, Run};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const FORMAT: u32 = 1;
/// Beginning of the names of the directories with chunks, each of one store.
pub(super) const STORE: &str = "store-";

/// State of a drive, which its directory keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DaemonState {
    format: u32,
    /// 128 random bits, in hexadecimal digits.
    drive: String,
    /// Seed of the TLS key.
    tls_seed: KeyText,
    /// The last run.
    run: u64,
    /// Until a file server has joined the drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    join_secret: Option<KeyText>,
    /// From then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<KeyText>,
    /// Epoch of the key.
    #[serde(default = "first_epoch", skip_serializing_if = "is_first_epoch")]
    epoch: u32,
}

impl Versioned for DaemonState {
    const SYNTAX: Syntax = Syntax::Toml;
    const IS_SECRET: bool = true;
    const REMEDY: &'static str =
        "put a good copy back: without its keys no file server can read what the drive has";
}

fn path(directory: &Path) -> PathBuf {
    directory.join(DaemonState::FILE)
}

fn bad(directory: &Path, why: impl ToString) -> DrivesError {
    DrivesError::File { path: path(directory), why: why.to_string() }
}

impl DaemonState {
    /// Its name.
    pub(super) const FILE: &str = "drive.toml";

    /// What helps when it is lost.
    pub(super) fn remedy() -> &'static str {
        Self::REMEDY
    }

    /// Reads the state, if there is one.
    ///
    /// # Errors
    /// The file is damaged, missing beside data, or older than they are, or others may read it.
    pub(super) fn kept(directory: &Path) -> Result<Option<Self>, DrivesError> {
        let last = last_run_with_data(directory)?;
        let kept = Self::read_file(&path(directory))?;
        let known = kept.as_ref().map(|state| state.run);
        let older = match (known, last) {
            (None, Some(run)) => format!("it is missing, and there are data of run {run}"),
            (Some(known), Some(run)) if run > known => {
                format!("it is an older copy, of run {known}, and there are data of run {run}")
            }
            _ => return Ok(kept),
        };
        Err(bad(directory, format!("{older}; {}", Self::REMEDY)))
    }

    /// Reads the state for a new run, or makes that of a new drive. The number of the run is durable then.
    ///
    /// # Errors
    /// The file is damaged, missing beside data, or older than they are, others may read it, or the disk refuses.
    pub(super) fn begin_run(directory: &Path, env: &dyn Env) -> Result<Self, DrivesError> {
        let mut state = Self::kept(directory)?.unwrap_or_else(|| Self::new(env));
        state.run += 1;
        if state.run > RUN_MAX {
            return Err(bad(directory, "it has been started too often"));
        }
        state.write_file(&path(directory))?;
        Ok(state)
    }

    fn new(env: &dyn Env) -> Self {
        let drive = u128::from_be_bytes(env.random_bytes());
        let [tls_seed, secret] = [(); 2].map(|()| KeyText::of(&env.random_bytes()));
        let (format, drive) = (FORMAT, format!("{drive:032x}"));
        Self { format, drive, tls_seed, run: 0, join_secret: Some(secret), key: None, epoch: FIRST_EPOCH }
    }

    /// Keeps the key that a file server gives, in place of the join key or of the key before.
    pub(super) fn adopt(
        &mut self,
        directory: &Path,
        epoch: KeyEpoch,
        key: &Secret,
    ) -> Result<(), DrivesError> {
        let (key, epoch) = (Some(KeyText::of(key.expose())), epoch.0);
        let next = Self { key, epoch, join_secret: None, ..self.clone() };
        next.write_file(&path(directory))?;
        *self = next;
        Ok(())
    }

    /// This run.
    pub(super) fn run(&self) -> Run {
        Run(self.run)
    }

    /// The TLS key.
    pub(super) fn identity(&self, directory: &Path) -> Result<Identity, DrivesError> {
        let seed = self.tls_seed.bytes().ok_or_else(|| bad(directory, "its TLS key is damaged"))?;
        Identity::of_seed(&seed).map_err(|error| bad(directory, error))
    }

    /// The key of its file server, or, before there is one, that of its join key with the secret.
    pub(super) fn key(&self, directory: &Path) -> Result<(DriveKey, Option<Secret>), DrivesError> {
        let drive = u128::from_str_radix(&self.drive, 16).map_err(|error| bad(directory, error))?;
        let damaged = || bad(directory, "its key is damaged");
        let key = |text: &KeyText, epoch| {
            let bytes = text.bytes().ok_or_else(damaged)?;
            Ok((DriveKey::new(DriveId(drive), KeyEpoch(epoch), *bytes), Secret::new(*bytes)))
        };
        match (&self.key, &self.join_secret) {
            (Some(text), _) => key(text, self.epoch).map(|(key, _)| (key, None)),
            (None, Some(text)) => key(text, 0).map(|(key, secret)| (key, Some(secret))),
            (None, None) => Err(damaged()),
        }
    }
}

/// The greatest number of a run that has written a segment.
fn last_run_with_data(directory: &Path) -> Result<Option<u64>, DrivesError> {
    let cannot = |error| DrivesError::Directory { path: directory.to_owned(), error };
    let mut last = None;
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let store = entry.map_err(cannot)?;
        if !store.file_name().to_string_lossy().starts_with(STORE) {
            continue;
        }
        for segment in fs::read_dir(store.path()).map_err(cannot)? {
            last = last.max(run_of_segment(&segment.map_err(cannot)?.file_name().to_string_lossy()));
        }
    }
    Ok(last)
}

/// The upper 32 bits of its number.
fn run_of_segment(name: &str) -> Option<u64> {
    Some(u64::from_str_radix(name.strip_suffix(".seg")?, 16).ok()? >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_count_up_and_a_join_key_is_void_when_there_is_a_key() {
        let directory = tempfile::tempdir().unwrap();
        let env = afs_env::Parts::inline();
        let mut first = DaemonState::begin_run(directory.path(), &*env).unwrap();
        assert!(first.key(directory.path()).unwrap().1.is_some());
        first.adopt(directory.path(), KeyEpoch(1), &Secret::new([9; 32])).unwrap();
        let second = DaemonState::begin_run(directory.path(), &*env).unwrap();
        assert_eq!((first.run(), second.run()), (Run(1), Run(2)));
        let (key, secret) = second.key(directory.path()).unwrap();
        assert!(secret.is_none() && key.epoch() == KeyEpoch(1));
        let fingerprint = |state: &DaemonState| state.identity(directory.path()).unwrap().fingerprint();
        assert_eq!(fingerprint(&first), fingerprint(&second));
        let text = || std::fs::read_to_string(path(directory.path())).unwrap();
        assert!(!text().contains("join_secret") && !text().contains("epoch"), "as an older program wrote it");
        let mut second = second;
        second.adopt(directory.path(), KeyEpoch(2), &Secret::new([8; 32])).unwrap();
        let third = DaemonState::begin_run(directory.path(), &*env).unwrap();
        assert_eq!(third.key(directory.path()).unwrap().0.epoch(), KeyEpoch(2));
    }
    #[test]
    fn a_state_that_is_missing_beside_data_or_older_than_they_are_is_not_made_anew() {
        let directory = tempfile::tempdir().unwrap();
        let env = afs_env::Parts::inline();
        let begin = || DaemonState::begin_run(directory.path(), &*env);
        begin().unwrap();
        let older = fs::read(path(directory.path())).unwrap();
        begin().unwrap();
        fs::create_dir(directory.path().join("store-1")).unwrap();
        fs::write(directory.path().join("store-1/0000000200000000.seg"), "").unwrap();
        begin().unwrap();
        fs::write(path(directory.path()), older).unwrap();
        let said = begin().unwrap_err().to_string();
        assert!(said.contains("drive.toml") && said.contains("an older copy, of run 1"), "{said}");
        fs::remove_file(path(directory.path())).unwrap();
        let said = begin().unwrap_err().to_string();
        assert!(said.contains("drive.toml") && said.contains("is missing"), "{said}");
    }
}
