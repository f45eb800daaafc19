//! `andrew fs recover`: data that could not be stored is listed, copied out, stored after all, or discarded.

use super::getfid::{self, ShownFid};
use super::path_in_mount;
use crate::commands::vos::dates;
use crate::error::{CommandError, CommandResult};
use crate::{output, size};
use afs_cell::tokens::{Mounts, Settle, Settled, UnsavedAt};
use afs_own::Opening;
use afs_venus::Unsaved;
use afs_wire::ids::UnixSeconds;
use clap::Subcommand;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest answer read, in bytes.
const ANSWER_MAX: u64 = 1024;

/// Options of `andrew fs recover`.
#[derive(clap::Args, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "\
When a file cannot be stored, its close fails; the mount keeps the data in its cache and retries the store. When the
mount has ended, however it ended, the next mount with this cache does so.
What the server refuses for good (no right any more, a newer version by others) is set aside: the file
is the server's again, and the data is here alone. Only who wrote it, and root, can have it.
Data of at most 256 files is set aside, and takes at most a quarter of the cache; the oldest goes first.
Not kept: data of a file that is removed, here or on another machine.

Examples:
  andrew fs recover list
  andrew fs recover save ~/afs/report.txt /tmp/report.txt
  andrew fs recover retry ~/afs/report.txt
  andrew fs recover discard 536870915.4.7"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the data that could not be stored, with the reasons
    List,
    /// Copy the data of a file out of the cache into a new file; it stays in the cache
    Save {
        /// A path in a mount, or a fid (VOLUME.VNODE.UNIQUE)
        #[arg(value_name = "PATH|FID")]
        what: PathBuf,
        /// The file that is made; it must not exist
        file: PathBuf,
    },
    /// Store the data of a file now
    Retry {
        /// A path in a mount, or a fid (VOLUME.VNODE.UNIQUE)
        #[arg(value_name = "PATH|FID")]
        what: PathBuf,
        /// How long to wait for the store, in seconds, at most 3600; it goes on after that
        #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=3600))]
        wait: u64,
    },
    /// Drop the data of a file, which then is as the server has it
    Discard {
        /// A path in a mount, or a fid (VOLUME.VNODE.UNIQUE)
        #[arg(value_name = "PATH|FID")]
        what: PathBuf,
        /// Do not ask at a terminal
        #[arg(long)]
        yes: bool,
    },
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// One line with the object, the cause and what helps.
    pub fn run(self, json: bool) -> CommandResult {
        match self.command {
            Command::List => {
                output::show(
                    json,
                    &List(Mounts::running().unsaved().into_iter().map(Listed::from).collect()),
                );
                Ok(())
            }
            Command::Save { what, file } => save(&find(&what)?, &file),
            Command::Retry { what, wait } => {
                let found = find(&what)?;
                let ask = || found.at.settle(found.data.number, Settle::Retry);
                retry(&found.shown, Duration::from_secs(wait), ask, io::stderr())
            }
            Command::Discard { what, yes } => {
                let found = find(&what)?;
                if !yes && io::stdin().is_terminal() && io::stderr().is_terminal() {
                    confirm(&found.shown, &found.data, io::stdin().lock(), io::stderr())?;
                }
                discard(&found)
            }
        }
    }
}

/// Unsaved data, and what the user has called it.
struct Found {
    shown: String,
    at: UnsavedAt,
    data: Unsaved,
}

/// The data that a path or fid names.
///
/// # Errors
/// There is none of this user's, or several files have the fid.
fn find(what: &Path) -> CommandResult<Found> {
    let shown = what.display().to_string();
    // A mount knows the path of what was looked up since it began.
    let _ = what.symlink_metadata();
    let all = Mounts::running().unsaved();
    let found: Vec<_> = match what.to_str().and_then(getfid::parse) {
        Some(fid) => all.into_iter().filter(|(_, it)| fid_of(it) == fid).collect(),
        None => {
            let (mount, rest) = path_in_mount::split(what)?;
            let rest = String::from_utf8_lossy(&rest).into_owned();
            let is_it = |(at, it): &(UnsavedAt, Unsaved)| {
                at.mount.device == mount.device && it.path.as_ref() == Some(&rest)
            };
            all.into_iter().filter(is_it).collect()
        }
    };
    // Data that was set aside comes beside newer data of the same file that is still retried: the newest has the highest number.
    let newest = found.into_iter().max_by_key(|(_, it)| it.number);
    let Some((at, data)) = newest else {
        return Err(CommandError::usage(format!(
            "fs: '{shown}' has no unsaved data of yours; `andrew fs recover list` shows what there is"
        )));
    };
    Ok(Found { shown, at, data })
}

fn fid_of(data: &Unsaved) -> ShownFid {
    ShownFid { volume: data.fid.volume, vnode: data.fid.vnode, unique: data.fid.unique }
}

/// Copies the data out piece by piece; zeros stay holes.
fn save(found: &Found, file: &Path) -> CommandResult {
    let to = file.display();
    let made = Opening::write().new_file().open(file);
    let made = made.map_err(|error| CommandError::failed(format!("fs: '{to}' cannot be made: {error}")))?;
    copy(found, &made).map_err(|error| {
        CommandError::failed(format!(
            "fs: the unsaved data of '{}' was not copied whole, and '{to}' has a part of it: {error}",
            found.shown
        ))
    })?;
    match found.data.missing_bytes {
        0 => Ok(()),
        missing => Err(CommandError::failed(format!(
            "fs: '{to}' has zeros in place of {missing} bytes of '{}' that are not in the cache and were not changed here; \
             the rest is there",
            found.shown
        ))),
    }
}

fn copy(found: &Found, to: &File) -> io::Result<()> {
    let mut offset = 0;
    loop {
        let piece = found.at.piece(found.data.number, offset)?;
        if piece.bytes.is_empty() {
            to.set_len(piece.at)?;
            return to.sync_all();
        }
        to.write_all_at(&piece.bytes, piece.at)?;
        offset = piece.at.saturating_add(piece.bytes.len() as u64);
    }
}

/// Stores the data, and tells what it waits for, every few seconds: each request to the mount waits that long.
fn retry(
    shown: &str,
    wait: Duration,
    ask: impl Fn() -> io::Result<Settled>,
    mut to: impl Write,
) -> CommandResult {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(Settled::Done) => return Ok(()),
            Ok(Settled::Waiting(why)) if begun.elapsed() >= wait => {
                return Err(CommandError::failed(format!(
                    "fs: the unsaved data of '{shown}' is not stored after {} s: {why}; the store goes on, and `andrew fs recover list` \
                     tells whether the data is still unsaved",
                    wait.as_secs()
                )));
            }
            Ok(Settled::Waiting(why)) => {
                let _ = writeln!(to, "fs: the unsaved data of '{shown}' is being stored: {why}");
            }
            Err(error) => {
                return Err(CommandError::failed(format!(
                    "fs: the unsaved data of '{shown}' is not stored: {error}"
                )));
            }
        }
    }
}

fn discard(found: &Found) -> CommandResult {
    match found.at.settle(found.data.number, Settle::Discard) {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::failed(format!(
            "fs: the unsaved data of '{}' is not discarded: {error}",
            found.shown
        ))),
    }
}

/// Asks the user to agree.
///
/// # Errors
/// The answer was not "yes", or the terminal was closed.
fn confirm(shown: &str, data: &Unsaved, from: impl BufRead, mut to: impl Write) -> CommandResult {
    let bytes = size::show(data.unsaved_bytes);
    let _ = write!(
        to,
        "'{shown}' has {bytes} that no server has; nothing brings them back. Type yes to drop them: "
    );
    let _ = to.flush();
    let mut answer = String::new();
    let read = from.take(ANSWER_MAX).read_line(&mut answer);
    if read.is_ok() && answer.trim() == "yes" {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "fs: the unsaved data of '{shown}' was not discarded: yes was not typed"
    )))
}

#[derive(Serialize)]
struct Listed {
    #[serde(serialize_with = "crate::output::path")]
    directory: PathBuf,
    #[serde(flatten)]
    data: Unsaved,
}

impl From<(UnsavedAt, Unsaved)> for Listed {
    fn from((at, data): (UnsavedAt, Unsaved)) -> Self {
        Listed { directory: at.mount.directory, data }
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<Listed>);

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "All data of yours is stored.");
        }
        self.0.iter().try_for_each(|it| write_one(f, it))?;
        match self.0.iter().filter(|it| it.data.is_set_aside).count() {
            0 => Ok(()),
            count => writeln!(
                f,
                "{count} set aside; of more than 256, or a quarter of the cache, the oldest goes first"
            ),
        }
    }
}

fn write_one(f: &mut fmt::Formatter<'_>, it: &Listed) -> fmt::Result {
    let (data, fid) = (&it.data, fid_of(&it.data));
    match &data.path {
        Some(path) => writeln!(f, "{}", it.directory.join(path).display())?,
        None => writeln!(f, "{fid} of {} (path not known)", it.directory.display())?,
    }
    let aside = if data.is_set_aside { ", set aside" } else { "" };
    let (unsaved, length) = (size::show(data.unsaved_bytes), size::show(data.length_bytes));
    writeln!(f, "  {fid} in cell {}: {unsaved} of {length} unsaved{aside}", data.cell)?;
    if data.missing_bytes > 0 {
        writeln!(f, "  {} of it are not in the cache", size::show(data.missing_bytes))?;
    }
    if !data.is_kept {
        writeln!(f, "  it is lost when the mount ends")?;
    }
    if let Some(error) = &data.error {
        let since = data.since.and_then(|since| u32::try_from(since).ok());
        let since =
            since.map_or(String::new(), |since| format!(" (since {})", dates::show(UnixSeconds(since))));
        writeln!(f, "  why: {error}{since}")?;
    }
    writeln!(f, "  to do: {}", data.advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_venus::ExplainedFid;

    fn unsaved() -> Unsaved {
        Unsaved {
            number: 17,
            path: Some("home/report".into()),
            cell: "example.org".into(),
            fid: ExplainedFid { volume: 536_870_915, vnode: 4, unique: 7 },
            uid: Some(1000),
            length_bytes: 3 << 20,
            unsaved_bytes: 2 << 20,
            missing_bytes: 0,
            is_set_aside: false,
            is_kept: true,
            error: Some("StoreData64: the volume's quota is used up".into()),
            advice: "have the quota raised, then retry".into(),
            since: None,
        }
    }

    #[test]
    fn a_list_tells_object_reason_and_what_to_do() {
        let of = |data| Listed { directory: "/afs".into(), data };
        let aside = Unsaved {
            path: None,
            is_set_aside: true,
            is_kept: false,
            missing_bytes: 1 << 20,
            error: None,
            ..unsaved()
        };
        assert_eq!(
            List(vec![of(unsaved()), of(aside)]).to_string(),
            "/afs/home/report\n  536870915.4.7 in cell example.org: 2.0 MiB of 3.0 MiB unsaved\n  why: StoreData64: the \
             volume's quota is used up\n  to do: have the quota raised, then retry\n536870915.4.7 of /afs (path not \
             known)\n  536870915.4.7 in cell example.org: 2.0 MiB of 3.0 MiB unsaved, set aside\n  1.0 MiB of it are \
             not in the cache\n  it is lost when the mount ends\n  to do: have the quota raised, then retry\n1 set aside; of more \
             than 256, or a quarter of the cache, the oldest goes first\n"
        );
        assert_eq!(List(vec![]).to_string(), "All data of yours is stored.\n");
    }

    #[test]
    fn a_retry_tells_what_it_waits_for_and_ends_in_time() {
        let answers = |waits: usize, last: fn() -> io::Result<Settled>| {
            let asked = std::cell::Cell::new(0);
            move || {
                asked.set(asked.get() + 1);
                if asked.get() > waits { last() } else { Ok(Settled::Waiting("for fs1".into())) }
            }
        };
        let mut told = Vec::new();
        retry("a", Duration::from_secs(60), answers(2, || Ok(Settled::Done)), &mut told).unwrap();
        let line = "fs: the unsaved data of 'a' is being stored: for fs1\n";
        assert_eq!(String::from_utf8(told).unwrap(), line.repeat(2));
        let refused = || Err(io::Error::other("no right"));
        let error = retry("a", Duration::from_secs(60), answers(1, refused), io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "fs: the unsaved data of 'a' is not stored: no right");
        let error = retry("a", Duration::ZERO, answers(9, refused), io::sink()).unwrap_err();
        assert!(
            error.to_string().starts_with("fs: the unsaved data of 'a' is not stored after 0 s: for fs1")
        );
    }

    #[test]
    fn only_yes_drops_the_data() {
        for (typed, agreed) in [("yes\n", true), ("y\n", false), ("\n", false), ("", false)] {
            let mut asked = Vec::new();
            let outcome = confirm("report", &unsaved(), typed.as_bytes(), &mut asked);
            assert_eq!(outcome.is_ok(), agreed, "{typed:?}");
            assert!(String::from_utf8(asked).unwrap().starts_with("'report' has 2.0 MiB that no server has"));
        }
    }
}
