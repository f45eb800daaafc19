//! Confirmation of the removal of a volume that has data.

use crate::error::{CommandError, CommandResult};
use crate::size;
use afs_admin::scheduled::is_scheduled;
use afs_admin::{Admin, AdminResult, RemoveOptions, ServerPartition};
use afs_wire::ids::{VolumeId, VolumeKind};
use std::fmt;
use std::io::{BufRead, Write};

/// Longest input read, in bytes.
const ANSWER_MAX: u64 = 1024;

/// The data that the removal of a read-write volume would delete.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Loss {
    name: String,
    files: u64,
    bytes: u64,
    snapshots: usize,
}

impl Loss {
    /// The data that would be lost; `None` if there is none (an empty volume, a copy, a snapshot), or if the volume
    /// would not be removed anyway.
    pub(super) async fn of(admin: &Admin, options: &RemoveOptions) -> AdminResult<Option<Self>> {
        let Some((place, id)) = read_write(admin, options).await? else { return Ok(None) };
        let Some(info) = admin.volume_at(place, id).await? else { return Ok(None) };
        // The root directory is counted, too.
        let files = u64::try_from(info.file_count).unwrap_or(0).saturating_sub(1);
        if info.kind.check() != Some(VolumeKind::ReadWrite) || files == 0 {
            return Ok(None);
        }
        let snapshots = admin.snapshots(&options.volume).await.unwrap_or_default();
        if !options.snapshots && snapshots.iter().any(|snapshot| !is_scheduled(&snapshot.name)) {
            return Ok(None);
        }
        let bytes = u64::try_from(info.size).unwrap_or(0).saturating_mul(1024);
        Ok(Some(Self { name: info.name.to_string(), files, bytes, snapshots: snapshots.len() }))
    }

    /// Asks the user to type the volume's name.
    ///
    /// # Errors
    /// Another text was typed, or the terminal was closed: the volume must not be removed.
    pub(super) fn confirm(&self, from: impl BufRead, mut to: impl Write) -> CommandResult {
        let _ = write!(to, "{self}. Type its name to remove it: ");
        let _ = to.flush();
        let mut answer = String::new();
        let read = from.take(ANSWER_MAX).read_line(&mut answer);
        if read.is_ok() && answer.trim() == self.name {
            return Ok(());
        }
        Err(CommandError::usage(format!("vos: {} was not removed: its name was not typed", self.name)))
    }
}

/// Partition and number of the read-write volume.
async fn read_write(
    admin: &Admin,
    options: &RemoveOptions,
) -> AdminResult<Option<(ServerPartition, VolumeId)>> {
    match admin.find_group(&options.volume).await? {
        Some(group) if group.kind == VolumeKind::ReadWrite => {
            Ok(options.place.or(group.home()).map(|place| (place, group.id())))
        }
        Some(_) => Ok(None),
        // A volume without an entry.
        None => Ok(options.place.zip(options.volume.parse().ok().map(VolumeId))),
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, files, bytes, snapshots } = self;
        let many = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let (files, bytes) = (many(*files, "file"), size::show(*bytes));
        write!(f, "Volume {name} holds {files}, directories included ({bytes})")?;
        match *snapshots {
            0 => {}
            count => write!(f, ", and has {}", many(count as u64, "snapshot"))?,
        }
        write!(f, "; nothing brings them back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(files: u64, snapshots: usize) -> Loss {
        Loss { name: "home.alice".into(), files, bytes: 3_330_000_000, snapshots }
    }

    #[test]
    fn only_the_volumes_name_removes_it() {
        for (typed, agreed) in [
            ("home.alice\n", true),
            ("home.alice", true),
            (" home.alice \n", true),
            ("home\n", false),
            ("y\n", false),
            ("\n", false),
            ("", false),
        ] {
            let mut asked = Vec::new();
            let outcome = loss(1204, 5).confirm(typed.as_bytes(), &mut asked);
            assert_eq!(outcome.is_ok(), agreed, "{typed:?}");
            assert_eq!(
                String::from_utf8(asked).unwrap(),
                "Volume home.alice holds 1204 files, directories included (3.1 GiB), and has 5 snapshots; nothing \
                 brings them back. Type its name to remove it: "
            );
        }
        let endless = std::io::BufReader::new(std::io::repeat(b'x'));
        assert_eq!(
            loss(1, 0).confirm(endless, std::io::sink()).unwrap_err().message,
            "vos: home.alice was not removed: its name was not typed"
        );
    }

    #[test]
    fn one_file_and_no_snapshots_are_said_as_such() {
        assert_eq!(
            loss(1, 0).to_string(),
            "Volume home.alice holds 1 file, directories included (3.1 GiB); nothing brings them back"
        );
        assert!(
            loss(2, 1).to_string().contains("2 files, directories included (3.1 GiB), and has 1 snapshot;")
        );
    }
}
