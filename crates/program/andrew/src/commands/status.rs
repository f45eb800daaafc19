//! `andrew status`: running cells and mounts on this machine.

use crate::commands::clock_text;
use crate::commands::vos::dates;
use crate::error::CommandResult;
use crate::open_files::{self, MountUse};
use crate::output;
use crate::running_cells;
use afs_cell::control::ControlClient;
use afs_cell::mounts::{self, Mount};
use afs_cell::state::{CellProcess, StateDir};
use afs_cell::tokens::properties;
use afs_cell::{DataPathState, DriveCounts, PartitionReport, PartitionScrub, ScrubPass};
use afs_wire::ids::UnixSeconds;
use indicatif::HumanBytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew status\n  andrew status --json | jq .cell.pid")]
pub struct Args {
    /// State directory of the cell [default: $ANDREW_STATE, or those of all your running cells]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

#[derive(Serialize)]
struct Status {
    #[serde(flatten)]
    first: Cell,
    /// Further running cells of this user.
    others: Vec<Cell>,
    mounts: Vec<MountStatus>,
}

/// A mount and its state.
#[derive(Serialize)]
struct MountStatus {
    #[serde(flatten)]
    mount: Mount,
    /// Whether its program has died.
    dead: bool,
    /// Open files and working directories in it, of processes that this user may inspect.
    uses: Vec<MountUse>,
    /// The file servers that it knows, and whether it uses their data path.
    data_paths: Vec<DataPath>,
    /// How far the clocks of the file servers that it has asked are ahead of this machine's.
    clocks: Vec<ServerClock>,
    /// What was read past its disk cache, and decided under leases, where this user may ask.
    #[serde(flatten)]
    counted: Option<Counted>,
}

/// Of the counters of a mount, those of the files that bypass its disk cache, and of its leases.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
struct Counted {
    #[serde(rename(deserialize = "files_bypassed"))]
    bypassed_files: u64,
    #[serde(rename(deserialize = "bytes_bypassed"))]
    bypassed_bytes: u64,
    /// Volumes of which pinned files are read without a promise at present.
    #[serde(default, rename(deserialize = "volumes_unpromised"))]
    unpromised_volumes: u64,
    /// None of a program that knows no leases.
    #[serde(default)]
    leases: CountedLeases,
}

/// Leases of directories, since the start of the mount.
#[derive(Clone, Copy, Default, Deserialize, Serialize)]
struct CountedLeases {
    taken: u64,
    recalled: u64,
    lost: u64,
    #[serde(rename(deserialize = "changes_decided"))]
    decided_changes: u64,
}

impl Counted {
    /// Answered from the memory of the mount's program.
    fn of(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&properties::get(directory, "afs.counters").ok()?).ok()
    }
}

/// Use of the data path of a file server.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct DataPath {
    server: String,
    state: String,
}

/// The clock of a file server.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct ServerClock {
    server: String,
    /// Negative if it is behind.
    ahead_seconds: i64,
}

/// The cell that runs on a state directory.
#[derive(Serialize)]
struct Cell {
    #[serde(serialize_with = "crate::output::path")]
    state: PathBuf,
    cell: Option<CellProcess>,
    /// States of its partitions, where this user may ask.
    partitions: Vec<PartitionReport>,
    /// Reports of the scrubs, by partition.
    scrubs: Vec<PartitionScrub>,
    /// Counters of the data path of its file server, where this user may ask.
    data_path_counts: Option<DriveCounts>,
}

impl Args {
    /// Prints the cell that runs on the state directory, or all running cells of this user, and every mount of Andrew's
    /// on this machine.
    ///
    /// # Errors
    /// The state directory cannot be read.
    pub fn run(self, json: bool) -> CommandResult {
        let all = if StateDir::is_given(self.state.as_deref()) { Vec::new() } else { running_cells::list()? };
        let state = match all.first() {
            Some(first) => first.state.clone(),
            None => StateDir::resolve(self.state.as_deref())?,
        };
        let told = |state: &StateDir| -> CommandResult<Cell> {
            let cell = state.running()?;
            let scrubs = if cell.is_some() { scrubs(state) } else { Vec::new() };
            let partitions = if cell.is_some() { partitions(state) } else { Vec::new() };
            let data_path_counts = cell.as_ref().and_then(|_| data_path_counts(state));
            Ok(Cell { state: state.path().to_owned(), cell, partitions, scrubs, data_path_counts })
        };
        let others = all.iter().skip(1).map(|one| told(&one.state)).collect::<CommandResult<_>>()?;
        output::show(json, &Status { first: told(&state)?, others, mounts: seen()? });
        Ok(())
    }
}

fn seen() -> CommandResult<Vec<MountStatus>> {
    let one = |mount: Mount| {
        let dead = mounts::is_dead(&mount.directory);
        let uses = if dead { Vec::new() } else { open_files::of(&mount.directory) };
        let data_paths = if dead { Vec::new() } else { data_paths(&mount.directory) };
        let clocks = if dead { Vec::new() } else { clocks(&mount.directory) };
        let counted = if dead { None } else { Counted::of(&mount.directory) };
        MountStatus { mount, dead, uses, data_paths, clocks, counted }
    };
    Ok(mounts::list()?.into_iter().map(one).collect())
}

/// Use of the data path by a mount; empty if this user may not read it, or the program of the mount does not say.
fn data_paths(directory: &Path) -> Vec<DataPath> {
    lines(&by_server(directory, "afs.datapath"), |server, state| Some(DataPath { server, state }))
}

/// The clocks of the file servers of a mount; empty as for [`data_paths`].
fn clocks(directory: &Path) -> Vec<ServerClock> {
    lines(&by_server(directory, "afs.clocks"), |server, seconds| {
        Some(ServerClock { server, ahead_seconds: seconds.parse().ok()? })
    })
}

/// What a mount tells of its file servers.
fn by_server(directory: &Path, name: &str) -> String {
    String::from_utf8_lossy(&properties::get(directory, name).unwrap_or_default()).into_owned()
}

fn lines<T>(text: &str, one: impl Fn(String, String) -> Option<T>) -> Vec<T> {
    let line = |line: &str| {
        let (server, told) = line.split_once(' ')?;
        one(server.to_owned(), told.to_owned())
    };
    text.lines().filter_map(line).collect()
}

/// Reports of the scrubs; empty if this user may not read them.
fn scrubs(state: &StateDir) -> Vec<PartitionScrub> {
    ControlClient::of(state).ok().and_then(|mut cell| cell.scrubs().ok()).unwrap_or_default()
}

/// States of the partitions; empty if this user may not read them.
fn partitions(state: &StateDir) -> Vec<PartitionReport> {
    ControlClient::of(state).ok().and_then(|mut cell| cell.partitions().ok()).unwrap_or_default()
}

/// Counters of the data path; `None` without a file server, or if this user may not read them.
fn data_path_counts(state: &StateDir) -> Option<DriveCounts> {
    ControlClient::of(state).ok()?.data_path().ok()?
}

/// Writes what the drive of the file server has done, if anybody has connected to it.
fn drive(f: &mut fmt::Formatter<'_>, counts: &DriveCounts) -> fmt::Result {
    if counts.connections_accepted == 0 && counts.turned_away == 0 {
        return Ok(());
    }
    let DriveCounts { connections, requests, reads, stores, revocations, .. } = counts;
    let (sent, received) = (HumanBytes(counts.sent_bytes), HumanBytes(counts.received_bytes));
    writeln!(
        f,
        "  {connections} connections, {requests} requests in progress; so far {reads} reads of {sent}, {stores} stores of {received}, {revocations} revocations"
    )?;
    let refused = counts.refused.iter().map(|(reason, count)| (format!("refused as {reason}"), *count));
    let others = [
        ("failed".to_owned(), counts.failed),
        ("turned away".to_owned(), counts.turned_away),
        ("violations of the protocol".to_owned(), counts.violations),
    ];
    let told = refused.chain(others).filter(|(_, count)| *count > 0);
    let told: Vec<String> = told.map(|(what, count)| format!("{count} {what}").replace('_', " ")).collect();
    if told.is_empty() { Ok(()) } else { writeln!(f, "  {}", told.join(", ")) }
}

/// Writes a line about a partition's data.
fn data(f: &mut fmt::Formatter<'_>, scrub: &PartitionScrub) -> fmt::Result {
    let Some(look) = scrub.now.or(scrub.last) else { return Ok(()) };
    let ScrubPass { began, ended, bytes, damaged, repaired } = look;
    let (when, read) = (if ended == 0 { began } else { ended }, HumanBytes(bytes));
    let when = dates::show(UnixSeconds(when));
    let verb = if ended == 0 { "being checked since" } else { "checked until" };
    write!(f, "data of partition {} {verb} {when}: {read} read", scrub.partition)?;
    match damaged {
        0 => writeln!(f, ", nothing damaged")?,
        _ => writeln!(f, ", {damaged} damaged, {repaired} of them repaired from replicas")?,
    }
    scrub.damaged.iter().try_for_each(|line| writeln!(f, "  damaged: {line}"))
}

/// Writes a line about the data path of the servers; nothing where it is off.
fn served_data_path(f: &mut fmt::Formatter<'_>, state: &DataPathState) -> fmt::Result {
    match state {
        DataPathState::Off => Ok(()),
        DataPathState::At(at) => writeln!(f, "data path at {at} (TCP)"),
        DataPathState::Failed(why) => writeln!(f, "no data path: {why}; clients use calls"),
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cell {
            Some(cell) => {
                writeln!(f, "cell {} runs as process {} on {}", cell.cell, cell.pid, self.state.display())?;
                writeln!(f, "servers at {}, ports from {}", cell.listen, cell.base_port)?;
                served_data_path(f, &cell.data_path)?;
                self.data_path_counts.iter().try_for_each(|counts| drive(f, counts))?;
            }
            None => writeln!(f, "no cell runs on {}; `andrew up` starts one", self.state.display())?,
        }
        for PartitionReport { partition, state, why } in &self.partitions {
            if let Some(why) = why {
                writeln!(f, "partition {partition} is {state}: {why}")?;
            }
        }
        self.scrubs.iter().try_for_each(|scrub| data(f, scrub))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.others.iter().try_for_each(|cell| cell.fmt(f))?;
        self.mounts.iter().try_for_each(|mount| mount.fmt(f))
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, bytes) = (self.bypassed_files, HumanBytes(self.bypassed_bytes));
        if files > 0 {
            writeln!(f, "  {bytes} of {files} open files read past its cache")?;
        }
        if self.unpromised_volumes > 0 {
            let count = self.unpromised_volumes;
            writeln!(
                f,
                "  no server replies: pinned files of {count} volume(s) are read without promise, as they were last known"
            )?;
        }
        let CountedLeases { taken, recalled, lost, decided_changes } = self.leases;
        if taken > 0 {
            writeln!(
                f,
                "  {decided_changes} changes decided under leases of directories; {taken} taken, {recalled} recalled, {lost} lost"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for MountStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mount { source, directory, .. } = &self.mount;
        let shown = directory.display();
        if self.dead {
            return writeln!(
                f,
                "the mount of cell {source} at {shown} is dead: its program has died; the command that mounted it (`andrew up` or `andrew mount`) mounts it again, `andrew umount {shown}` removes it"
            );
        }
        write!(f, "cell {source} is mounted at {shown}")?;
        match (self.uses.len(), self.uses.iter().filter(|one| one.writing).count()) {
            (0, _) => writeln!(f)?,
            (all, writing) => writeln!(f, "; {all} in use, {writing} of them open for writing")?,
        }
        self.counted.iter().try_for_each(|counted| counted.fmt(f))?;
        // Only what is not as everywhere: most servers have no data path, or have not been asked for it.
        let mut told =
            self.data_paths.iter().filter(|path| path.state == "in use" || path.state.starts_with("failed"));
        told.try_for_each(|path| writeln!(f, "  data path of server {}: {}", path.server, path.state))?;
        let wrong =
            |clock: &ServerClock| Some((clock.server.clone(), clock_text::told(clock.ahead_seconds)?));
        let mut wrong = self.clocks.iter().filter_map(wrong);
        wrong.try_for_each(|(server, told)| writeln!(f, "  the clock of server {server} is {told}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown(DriveCounts);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            drive(f, &self.0)
        }
    }

    #[test]
    fn a_drive_is_told_of_when_it_was_used_and_refusals_by_their_reason() {
        assert_eq!(Shown(DriveCounts { revocations: 3, ..DriveCounts::default() }).to_string(), "");
        let used = DriveCounts {
            connections: 2,
            requests: 1,
            connections_accepted: 5,
            reads: 10,
            stores: 4,
            sent_bytes: 2048,
            received_bytes: 512,
            revocations: 3,
            ..DriveCounts::default()
        };
        let first = "  2 connections, 1 requests in progress; so far 10 reads of 2.00 KiB, 4 stores of 512 B, 3 revocations\n";
        assert_eq!(Shown(used.clone()).to_string(), first);
        let refused = [("revoked", 7), ("other_drive", 1), ("forged", 0)];
        let refused = refused.map(|(reason, count)| (reason.to_owned(), count)).into();
        let used = DriveCounts { refused, turned_away: 9, ..used };
        let second = "  1 refused as other drive, 7 refused as revoked, 9 turned away\n";
        assert_eq!(Shown(used).to_string(), format!("{first}{second}"));
    }

    #[test]
    fn data_paths_are_told_where_one_is_used_or_has_failed() {
        let text = "10.0.0.1 in use\n10.0.0.2 none\n10.0.0.3 failed: stalled\n";
        let data_paths = lines(text, |server, state| Some(DataPath { server, state }));
        assert_eq!(data_paths.len(), 3);
        let clock = |n, ahead_seconds| ServerClock { server: format!("10.0.0.{n}"), ahead_seconds };
        let clocks = vec![clock(1, 1), clock(2, 108_000)];
        let mount = Mount { directory: "/a".into(), source: "example.org".into(), device: "0:7".into() };
        let seen = MountStatus { mount, dead: false, uses: Vec::new(), data_paths, clocks, counted: None };
        assert_eq!(
            seen.to_string(),
            "cell example.org is mounted at /a\n  data path of server 10.0.0.1: in use\n  data path of server 10.0.0.3: failed: stalled\n  the clock of server 10.0.0.2 is 30 h ahead of this machine's\n"
        );
    }

    #[test]
    fn leases_are_told_of_a_mount_that_took_one() {
        let text = r#"{"files_bypassed":0,"bytes_bypassed":0,"leases":{"taken":2,"recalled":1,"lost":0,"changes_decided":70}}"#;
        let counted: Counted = serde_json::from_str(text).unwrap();
        let line = "  70 changes decided under leases of directories; 2 taken, 1 recalled, 0 lost\n";
        assert_eq!(counted.to_string(), line);
        let away: Counted =
            serde_json::from_str(r#"{"files_bypassed":0,"bytes_bypassed":0,"volumes_unpromised":2}"#)
                .unwrap();
        let line = "  no server replies: pinned files of 2 volume(s) are read without promise, as they were last known\n";
        assert_eq!(away.to_string(), line);
        let older: Counted = serde_json::from_str(r#"{"files_bypassed":1,"bytes_bypassed":2}"#).unwrap();
        assert_eq!(older.to_string(), "  2 B of 1 open files read past its cache\n");
    }
}
