//! `andrew-lab nasd`: one load through the four organisations of disks of Gibson et al. 1997, as settings of a volume
//! (`andrew vos setpath`), with what each costs the manager of files.

use crate::commands::bench_bulk::{BULK_DIRECTORIES, Stop, length, mount_attributes, places};
use crate::commands::bench_load::fid;
use crate::commands::progress::{TIME_LEFT, bar};
use afs_admin::DataSettings;
use afs_lab::bulk::{AT_ONCE_MAX, FILES_MAX, Many, ManyTaken, Operation, Place};
use afs_wire::vol::{DataRoute, DriveCount, Placement};
use andrew::commands::vos::ops::Ops;
use andrew::commands::vos::route_options::RouteOptions;
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Those that need most first: a mount that was refused a way does not ask for it again for three minutes.
const ORDER: [DataRoute; 4] = [DataRoute::Drives, DataRoute::Commanded, DataRoute::Server, DataRoute::Calls];

/// Options of `andrew-lab nasd`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Sets how the bytes of the volume that has DIR may travel (see `andrew vos setpath --help`), in turn as nasd, netscsi, sid and sad. In each,
files are stored and read past the cache there, and the processor time of the file server's process, which manages the files, is divided
by requests and by bytes. A request is one file: created, written and closed, or opened, read and closed. Where the new data of the
partition go to several drives, each organisation is measured over one of them, two and so on (`andrew vos setwidth`), without copies.

Settings of the volume are as before when the command ends, also by a first signal; what others store there meanwhile goes as they are set.
The file server must be a process of its own on this machine (`andrew serve`, not `andrew up`), and the mount must use the data path. Give
one that has not used the volume for three minutes, such as a new one: it remembers that long which ways it was refused.

Example:
  andrew vos create lab && andrew fs mkmount ~/afs/lab lab
  andrew-lab nasd --mount ~/afs/lab
  andrew-lab --json nasd --mount ~/afs/lab --files 64 --size 16M --at-once 2")]
pub struct Args {
    /// Directory in a mount of Andrew to measure in; what is written there is removed
    #[arg(long, value_name = "DIR")]
    mount: PathBuf,
    /// Process of the file server [default: that of the cell on this machine]
    #[arg(long, value_name = "PID")]
    server: Option<u32>,
    /// Files of each turn
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=i64::from(FILES_MAX)))]
    files: u32,
    /// Length of a file
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = length)]
    size: u64,
    /// Requests in progress at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(AT_ONCE_MAX)))]
    at_once: u32,
    #[command(flatten)]
    route: RouteOptions,
}

impl Args {
    /// Runs the load in each organisation and prints what it took.
    ///
    /// # Errors
    /// A directory in no mount, a server that is no process of its own here, status 2; no right to set the volume's ways, a load that failed, a
    /// signal, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        // Before any thread is started.
        let stop = Stop::on_signals(BULK_DIRECTORIES)?;
        let volume = mount_attributes::text(&self.mount, "afs.fid").ok().and_then(|text| fid(&text).ok());
        let volume = volume.ok_or_else(|| {
            let shown = self.mount.display();
            CommandError::usage(format!(
                "nasd: {shown} is in no mount of Andrew; `andrew status` shows those there are"
            ))
        })?;
        let volume = volume.volume.to_string();
        let place = self.place()?;
        let ops = Ops::open(&self.route, json)?;
        let name = volume.clone();
        let before = ops.run(|admin| async move { admin.data_settings(&name).await })?;
        // With one drive there is nothing to be said of where data go.
        let has_several = before.drives > 1;
        let measured = self.measure(&ops, &volume, &before, &place, &stop);
        let restored = set(&ops, &volume, before.route, has_several.then_some(before.placement));
        let lines = measured?;
        restored?;
        output::show(
            json,
            &Answer { drives: before.drives, files: self.files, size_bytes: self.size, organisations: lines },
        );
        Ok(())
    }

    /// The directory, with the server's process alone.
    fn place(&self) -> CommandResult<Place> {
        let given: Vec<_> = self.server.map(|pid| ("server".to_owned(), pid)).into_iter().collect();
        let mut place = places::writer(&self.mount, &given)?;
        place.processes.retain(|process| match self.server {
            Some(pid) => process.pid == pid,
            None => process.name.starts_with("server"),
        });
        if place.processes.is_empty() {
            return Err(CommandError::usage(
                "nasd: no file server of this cell is a process of its own on this machine; start the cell with `andrew serve` and \
                 mount it with `andrew mount`, or give the process with --server",
            ));
        }
        Ok(place)
    }

    fn measure(
        &self,
        ops: &Ops,
        volume: &str,
        before: &DataSettings,
        place: &Place,
        stop: &Stop,
    ) -> CommandResult<Vec<Line>> {
        let widths: Vec<DriveCount> = (1..=before.drives.max(1)).map_while(DriveCount::new).collect();
        let bar = bar(TIME_LEFT);
        bar.set_length(2 * self.size * u64::from(self.files) * (ORDER.len() * widths.len()) as u64);
        let mut lines = Vec::new();
        for route in ORDER {
            for width in &widths {
                bar.set_message(format!("{route} over {width}"));
                let placement = Placement { copies: Some(DriveCount::ONE), width: *width };
                set(ops, volume, route, (before.drives > 1).then_some(placement))?;
                let progress = |bytes| bar.inc(bytes);
                let Self { files, size: bytes, at_once, .. } = *self;
                let load = Many { place, files, bytes, at_once, progress: &progress, stop: stop.flag() };
                let taken = load.run().map_err(|error| {
                    CommandError::failed(format!("nasd: {route} over {width} drive(s): {error}"))
                })?;
                lines.extend(taken.map(|taken| Line::of(route, *width, &taken)));
            }
        }
        bar.finish_and_clear();
        Ok(lines)
    }
}

fn set(ops: &Ops, volume: &str, route: DataRoute, placement: Option<Placement>) -> CommandResult {
    let volume = volume.to_owned();
    ops.run(|admin| async move {
        if let Some(placement) = placement {
            admin.set_placement(&volume, placement).await?;
        }
        admin.set_route(&volume, route).await
    })
}

#[derive(Serialize)]
struct Answer {
    /// Drives to which the new data of the partition go.
    drives: u32,
    files: u32,
    size_bytes: u64,
    organisations: Vec<Line>,
}

/// All requests of a kind in an organisation.
#[derive(Serialize)]
struct Line {
    organisation: String,
    /// Drives over which the bytes went round.
    width: u8,
    request: &'static str,
    requests: u32,
    bytes: u64,
    seconds: f64,
    mb_per_second: f64,
    manager_us_per_request: f64,
    manager_ns_per_byte: f64,
    /// Bytes that the file manager's process sent or received; null if the mount does not count.
    manager_bytes: Option<u64>,
}

impl Line {
    fn of(route: DataRoute, width: DriveCount, taken: &ManyTaken) -> Self {
        let is_store = taken.operation == Operation::Store;
        let by_manager = taken.moved.map(|moved| match is_store {
            true => moved.stored_bytes.saturating_sub(moved.stored_at_drives_bytes),
            false => moved.fetched_bytes.saturating_sub(moved.fetched_at_drives_bytes),
        });
        Self {
            organisation: route.to_string(),
            width: width.get(),
            request: if is_store { "store" } else { "read" },
            requests: taken.requests,
            bytes: taken.bytes,
            seconds: taken.seconds,
            mb_per_second: taken.bytes as f64 / taken.seconds / 1e6,
            manager_us_per_request: taken.process_seconds * 1e6 / f64::from(taken.requests),
            manager_ns_per_byte: taken.process_seconds * 1e9 / taken.bytes as f64,
            manager_bytes: by_manager,
        }
    }

    /// Whether no byte was moved at a drive where all could have been.
    fn is_by_another_way(&self) -> bool {
        let route = DataRoute::of_name(&self.organisation);
        let is_at_drives = matches!(route, Some(DataRoute::Drives | DataRoute::Commanded));
        is_at_drives && self.manager_bytes.is_some_and(|bytes| bytes >= self.bytes)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = andrew::size::show(self.size_bytes);
        writeln!(
            f,
            "{} files of {size}; new data of the partition go to {} drive(s)",
            self.files, self.drives
        )?;
        writeln!(
            f,
            "{:<12} {:>6} {:<7} {:>9} {:>15} {:>13} {:>12}",
            "organisation", "drives", "request", "MB/s", "manager us each", "manager ns/B", "MB by manager"
        )?;
        for line in &self.organisations {
            let Line { organisation, width, request, mb_per_second, .. } = line;
            let Line { manager_us_per_request, manager_ns_per_byte, manager_bytes, .. } = line;
            let by_manager =
                manager_bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes as f64 / 1e6));
            writeln!(
                f,
                "{organisation:<12} {width:>6} {request:<7} {mb_per_second:>9.1} {manager_us_per_request:>15.1} \
                 {manager_ns_per_byte:>13.3} {by_manager:>13}"
            )?;
        }
        for line in self.organisations.iter().filter(|line| line.is_by_another_way()) {
            let Line { organisation, width, request, .. } = line;
            writeln!(
                f,
                "{organisation} over {width}, {request}: nothing went by drives; `andrew fs explain` tells what the mount knows of them"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_lab::bulk::Moved;

    #[test]
    fn bytes_of_the_manager_are_those_that_no_drive_moved() {
        let moved = Moved {
            fetched_bytes: 1000,
            fetched_at_drives_bytes: 900,
            stored_bytes: 1000,
            stored_at_drives_bytes: 1000,
            ..Moved::default()
        };
        let taken = |operation, moved| ManyTaken {
            operation,
            requests: 10,
            bytes: 1000,
            seconds: 2.0,
            process_seconds: 0.001,
            moved,
        };
        let line = |operation, moved| Line::of(DataRoute::Drives, DriveCount::ONE, &taken(operation, moved));
        let read = line(Operation::ColdFetch, Some(moved));
        assert_eq!((read.manager_bytes, read.request), (Some(100), "read"));
        assert_eq!((read.manager_us_per_request, read.manager_ns_per_byte), (100.0, 1000.0));
        assert_eq!(line(Operation::Store, Some(moved)).manager_bytes, Some(0));
        assert!(!read.is_by_another_way() && !line(Operation::ColdFetch, None).is_by_another_way());
        let other = Moved { fetched_bytes: 1000, ..Moved::default() };
        let lines = vec![line(Operation::ColdFetch, Some(other))];
        let said = Answer { drives: 1, files: 10, size_bytes: 100, organisations: lines }.to_string();
        assert!(
            said.ends_with(
                "nasd over 1, read: nothing went by drives; `andrew fs explain` tells what the mount knows of them\n"
            ),
            "{said}"
        );
    }
}
