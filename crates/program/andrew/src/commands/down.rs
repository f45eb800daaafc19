//! `andrew down`: stops a running cell.

use crate::commands::vos::ops::Ops;
use crate::commands::vos::route_options::RouteOptions;
use crate::error::{CommandError, CommandResult};
use crate::open_files::{self, MountUse, Shown};
use crate::output;
use crate::running_cells;
use afs_cell::mounts;
use afs_cell::process::Process;
use afs_cell::state::{CellProcess, StateDir};
use afs_cell::{LeftOpen, NotStored};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `andrew down`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew down\n  andrew down --state /srv/cell")]
pub struct Args {
    /// State directory of the cell [default: $ANDREW_STATE, or that of your only cell]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Seconds to wait for the cell to store dirty data and end
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
}

/// Most files that the text lists.
const SHOWN_MAX: usize = 10;

#[derive(Serialize)]
struct Stopped {
    cell: String,
    pid: u32,
    /// Address of the server that was stopped.
    server: IpAddr,
    /// Addresses of the cell's other servers, whether they reply or not.
    #[serde(rename = "other_servers")]
    others: BTreeSet<IpAddr>,
    /// Files of its mount that were open for writing when it was stopped; at most 1000.
    left_open: Vec<PathBuf>,
    /// Data of its mount that no server took: kept in the cache for the next mount, or lost.
    not_stored: Vec<NotStored>,
    /// Files and directories of its mount that were in use before, with their processes, as far as this user may know.
    uses: Vec<MountUse>,
}

impl Args {
    /// Sends the cell's process SIGTERM and waits for its end.
    ///
    /// # Errors
    /// No cell runs, or it did not end in time.
    pub fn run(self, json: bool) -> CommandResult {
        let state = running_cells::of_process(self.state.as_deref())?;
        let shown = state.path().display();
        let running = state.running()?;
        let Some(running) = running else {
            // A killed process leaves its mount behind.
            let cleared = clear_mount(state.last().as_ref())?;
            let also = if cleared { "; the mount it left behind is gone now" } else { "" };
            return Err(CommandError::usage(format!(
                "no cell is running on {shown}; `andrew status` shows what runs{also}"
            )));
        };
        let failed =
            |e: std::io::Error| CommandError::failed(format!("cannot stop process {}: {e}", running.pid));
        let uses = running.mount.as_deref().map(open_files::of).unwrap_or_default();
        let others = others(&state, &running);
        if let Some(process) = Process::open(running.pid).map_err(failed)? {
            process.terminate().map_err(failed)?;
            if !process.ended_within(Duration::from_secs(self.wait)).map_err(failed)? {
                return Err(CommandError::failed(format!(
                    "process {} has not ended after {} s; see {}",
                    running.pid,
                    self.wait,
                    state.log().display()
                )));
            }
        }
        let left = running.mount.as_ref().map(|_| LeftOpen::of(&state.cache())).unwrap_or_default();
        clear_mount(Some(&running))?;
        let trouble = state.last().filter(|last| last.pid == running.pid).and_then(|last| last.trouble);
        let (left_open, not_stored) = (left.files, left.not_stored);
        let (cell, pid, server) = (running.cell, running.pid, running.listen);
        output::show(json, &Stopped { cell, pid, server, others, left_open, not_stored, uses });
        trouble.map_or(Ok(()), |line| Err(CommandError::failed(line)))
    }
}

/// The other servers of the cell: those of its databases, and, as far as this one serves the databases itself, those that are registered
/// there.
fn others(state: &StateDir, running: &CellProcess) -> BTreeSet<IpAddr> {
    let is_own = |address: &IpAddr| *address == running.listen;
    let mut others: BTreeSet<IpAddr> = running.locations.iter().copied().map(IpAddr::V4).collect();
    if others.is_empty() || others.iter().any(is_own) {
        let registered = Ops::open(&RouteOptions::of_state(state.path()), false)
            .and_then(|ops| ops.run(|admin| async move { admin.servers().await }));
        let registered = registered.inspect_err(|error| tracing::debug!("{error:?}")).unwrap_or_default();
        let elsewhere =
            registered.iter().filter(|server| !server.addresses.iter().any(|it| is_own(&IpAddr::V4(*it))));
        others.extend(elsewhere.filter_map(|server| server.addresses.first().copied().map(IpAddr::V4)));
    }
    others.retain(|address| !is_own(address));
    others
}

/// Unmounts what a process that no longer exists has left mounted; true if there was a mount.
fn clear_mount(left: Option<&CellProcess>) -> CommandResult<bool> {
    let Some(mount) = left.and_then(|r| r.mount.as_ref()) else { return Ok(false) };
    if !mounts::list()?.iter().any(|m| &m.directory == mount) {
        return Ok(false);
    }
    afs_fuse::unmount(mount, true)
        .map_err(|e| CommandError::failed(format!("cannot unmount {}: {e}", mount.display())))?;
    Ok(true)
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.others.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ") {
            others if others.is_empty() => writeln!(f, "cell {} is down", self.cell)?,
            others => writeln!(
                f,
                "server {} of cell {} is down; others of the cell are at {others}: `andrew server list` shows which reply",
                self.server, self.cell
            )?,
        }
        for file in self.left_open.iter().take(SHOWN_MAX) {
            writeln!(
                f,
                "{} was open for writing: what was written is stored, later writes are lost",
                file.display()
            )?;
        }
        if let Some(more @ 1..) = self.left_open.len().checked_sub(SHOWN_MAX) {
            writeln!(f, "and {more} other files")?;
        }
        for lost in self.not_stored.iter().take(SHOWN_MAX) {
            writeln!(f, "{lost}")?;
        }
        if let Some(more @ 1..) = self.not_stored.len().checked_sub(SHOWN_MAX) {
            writeln!(f, "and data of {more} other files")?;
        }
        if !self.uses.is_empty() {
            writeln!(f, "in use when it was stopped: {}", Shown(&self.uses))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_is_kept_or_lost_with_the_mount_is_named_with_its_reason() {
        let lost = |n: u32| NotStored {
            file: format!("/afs/file{n}"),
            bytes: 2048,
            why: Some("the volume's quota is used up".into()),
            is_kept: n == 8,
        };
        let stopped = Stopped {
            cell: "example.org".into(),
            pid: 1,
            server: [192, 0, 2, 1].into(),
            others: BTreeSet::new(),
            left_open: vec![],
            not_stored: (0..12).map(lost).collect(),
            uses: vec![],
        };
        let text = stopped.to_string();
        let kept = "2048 bytes of /afs/file8 are kept in the cache, and will be retried at the next mount, as no server took them: the volume's quota is used up\n";
        assert!(text.contains(kept), "{text}");
        let wanted = "2048 bytes of /afs/file9 are lost, as no server took them: the volume's quota is used up\nand data of 2 other files\n";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn one_server_of_two_is_not_the_cell() {
        let stopped = |others: &[[u8; 4]]| Stopped {
            cell: "example.org".into(),
            pid: 1,
            server: [192, 0, 2, 2].into(),
            others: others.iter().map(|address| IpAddr::from(*address)).collect(),
            left_open: vec![],
            not_stored: vec![],
            uses: vec![],
        };
        assert_eq!(stopped(&[]).to_string(), "cell example.org is down\n");
        assert_eq!(
            stopped(&[[192, 0, 2, 1]]).to_string(),
            "server 192.0.2.2 of cell example.org is down; others of the cell are at 192.0.2.1: `andrew server list` shows which reply\n"
        );
    }

    #[test]
    fn stopping_without_a_running_cell_is_bad_input() {
        let dir = tempfile::tempdir().unwrap();
        let error = Args { state: Some(dir.path().into()), wait: 1 }.run(false).unwrap_err();
        assert_eq!(error.status, CommandError::USAGE);
        let wanted =
            format!("no cell is running on {}; `andrew status` shows what runs", dir.path().display());
        assert_eq!(error.message, wanted);
    }
}
