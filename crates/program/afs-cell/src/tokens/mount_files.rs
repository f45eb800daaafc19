//! Files of the tokens that a mount uses, by which its next process has them too: one for each owner and cell, which only
//! the user of the mount's process may read.
//!
//! They lie where the mount's socket is, in memory on usual systems, and not in the cache: a disk that is stolen with its
//! machine has no tokens of others.

use super::kept::KeptToken;
use super::session::SessionId;
use super::store::read;
use crate::error::CellResult;
use afs_files::secret_file;
use afs_rpc::UnixTime;
use afs_venus::TokenOwner;
use afs_wire::ids::CellName;
use parking_lot::Mutex;
use std::fs;
use std::path::{Path, PathBuf};

/// Most files read.
const FILES_MAX: usize = 4096;
/// In the place of a session: the owner is a user.
const NO_SESSION: &str = "user";

/// The files of one mount.
pub(super) struct MountFiles {
    directory: PathBuf,
    /// Held while a file is written or removed: the last order is the last to be carried out.
    turn: Mutex<()>,
}

impl MountFiles {
    /// The files in a directory, which need not exist.
    pub(super) fn at(directory: PathBuf) -> Self {
        Self { directory, turn: Mutex::new(()) }
    }

    /// The tokens that are valid at a time, with their owners; the files of others are removed. At most 4096.
    pub(super) fn take_valid(&self, now: UnixTime) -> Vec<(TokenOwner, KeptToken)> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten().take(FILES_MAX);
        let mut valid = Vec::new();
        for path in entries.map(|entry| entry.path()) {
            match owned(&path) {
                Ok(Some((owner, kept))) if kept.is_good_at(now) => valid.push((owner, kept)),
                Ok(_) => {
                    let _ = fs::remove_file(&path);
                }
                Err(error) => {
                    tracing::warn!("a token of the last mount cannot be used: {error}");
                    let _ = fs::remove_file(&path);
                }
            }
        }
        valid
    }

    /// Writes a token, if it is still to be kept when its turn has come.
    pub(super) fn put(&self, owner: TokenOwner, kept: &KeptToken, is_current: impl FnOnce() -> bool) {
        let _turn = self.turn.lock();
        if !is_current() {
            return;
        }
        if let Err(error) = secret_file::write(&self.path(owner, &kept.cell), &kept.encode()) {
            tracing::warn!("a restart of this mount will lose a token of {owner}: {error}");
        }
    }

    /// Removes a token.
    pub(super) fn remove(&self, owner: TokenOwner, cell: &CellName) {
        let _turn = self.turn.lock();
        match fs::remove_file(self.path(owner, cell)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::error!("a token of {owner} cannot be removed from its file: {error}");
            }
            _ => {}
        }
    }

    fn path(&self, owner: TokenOwner, cell: &CellName) -> PathBuf {
        let session = match owner {
            TokenOwner::Uid(_) => NO_SESSION.to_owned(),
            TokenOwner::Session { id, .. } => SessionId(id.to_be_bytes()).to_string(),
        };
        self.directory.join(format!("{}.{session}.{cell}", owner.uid()))
    }
}

/// The token of a file and its owner, by the file's name; `None` for any other file.
fn owned(path: &Path) -> CellResult<Option<(TokenOwner, KeptToken)>> {
    let Some((owner, cell)) = path.file_name().and_then(|name| name.to_str()).and_then(owner_and_cell) else {
        return Ok(None);
    };
    let kept = read(path)?.filter(|kept| kept.cell.as_str() == cell);
    Ok(kept.map(|kept| (owner, kept)))
}

fn owner_and_cell(name: &str) -> Option<(TokenOwner, &str)> {
    let mut parts = name.splitn(3, '.');
    let (uid, session, cell) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
    let owner = match session {
        NO_SESSION => TokenOwner::Uid(uid),
        session => TokenOwner::Session { id: session.parse::<SessionId>().ok()?.number(), uid },
    };
    Some((owner, cell))
}

#[cfg(test)]
mod tests {
    use super::super::samples::kept;
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn tokens_are_kept_for_the_next_process_until_they_end_or_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("mount");
        let files = MountFiles::at(directory.clone());
        let at = |secs| UnixTime { secs, nanos: 0 };
        let (user, session) = (TokenOwner::Uid(1000), TokenOwner::Session { id: 7, uid: 1000 });
        let (one, two) = (kept("example.org", 10), kept("a-b.example.com", 20));
        files.put(user, &one, || true);
        files.put(session, &two, || true);
        files.put(TokenOwner::Uid(5), &one, || false);
        fs::write(directory.join("1000.user.example.net.new"), "half a write").unwrap();
        let modes =
            fs::read_dir(&directory).unwrap().map(|it| it.unwrap().metadata().unwrap().mode() & 0o777);
        assert_eq!(modes.filter(|mode| *mode == 0o600).count(), 2);
        let mut valid = MountFiles::at(directory.clone()).take_valid(at(1));
        valid.sort_by_key(|(owner, _)| *owner);
        assert_eq!(valid, [(user, one.clone()), (session, two.clone())]);
        assert_eq!(files.take_valid(at(15)), [(session, two.clone())], "the other has ended");
        files.remove(session, &two.cell);
        files.remove(session, &two.cell);
        assert_eq!(files.take_valid(at(1)), []);
    }
}
