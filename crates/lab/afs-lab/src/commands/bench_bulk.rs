//! `andrew-lab bench bulk`: store and fetch of large files on any directory.

pub(crate) mod mount_attributes;
mod mount_cache;
pub(crate) mod places;
mod report;
mod statuses;
mod stop;

use crate::commands::bench_load::CallSecurity;
use crate::commands::progress::bar;
use afs_lab::LabError;
use afs_lab::bulk::{Bulk, Place, Progress, RUNS_MAX, SmallOperation, StatOf};
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use indicatif::ProgressBar;
use report::Answer;
use statuses::Statuses;
use std::path::PathBuf;
pub(crate) use stop::{BULK_DIRECTORIES, Stop};

/// Options of `andrew-lab bench bulk`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
For each size a file is written and closed (store), then read where nothing of it is cached (cold fetch)
and read once more (warm fetch), and compared with what was written. On a mount of Andrew the fetches are
made through its cache and past it (see `andrew fs bypass`), and the mount tells how much came by the data
path. A mount uses the data path or not from its start: to compare, mount twice (andrew mount --data-path)
and give the second mount with --read-dir.

How a file is made cold is reported: a mount of Andrew drops it (`andrew fs flush`); another client, given with
--read-dir, has never read it; elsewhere the kernel drops the file's pages, but a cache that the file system has
itself stays as it is. With --read-dir the file must be at the servers when it is closed, which is not so with
OpenAFS's afsd.fuse as --dir.

Processor time is that of the thread that reads or writes, and that of other processes: the client of a mount
of Andrew and the servers of its cell are found if they are this user's and on this machine, others are given
with --pid. A GB is 1,000,000,000 bytes, as in MB/s; --size has powers of 1024.

With --others another client repeats a small operation before and beside each transfer: FetchStatus at
the server of a mount of Andrew, anonymous without --security; elsewhere the status of the directory, which
the file system may have cached.

Examples:
  andrew-lab bench bulk --dir ~/afs
  andrew-lab bench bulk --dir /mnt/on --read-dir /mnt/on --read-dir /mnt/off --size 100M --runs 5 --others
  andrew-lab bench bulk --dir /mnt/writer --read-dir /afs/example.org/scratch --pid client=4711 --pid server=4712")]
pub struct Args {
    /// Directory to store in; the files written there are removed afterwards
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Directory that shows the same files, to fetch there, for instance on another client; several by turns
    /// [default: that of --dir]
    #[arg(long, value_name = "DIR")]
    read_dir: Vec<PathBuf>,
    /// Lengths of the files
    #[arg(long, value_name = "SIZE", value_delimiter = ',', default_value = "1M,10M,100M,1G", value_parser = length)]
    size: Vec<u64>,
    /// Repetitions of each length
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    runs: u32,
    /// Process whose processor time is measured, under a name, such as client=4711
    #[arg(long, value_name = "NAME=PID", value_parser = named_process)]
    pid: Vec<(String, u32)>,
    /// Measure small operations of another client, idle and beside each store and fetch
    #[arg(long)]
    others: bool,
    #[command(flatten)]
    security: CallSecurity,
}

impl Args {
    /// Runs the measurement and prints its report.
    ///
    /// # Errors
    /// A directory that is none, a process that does not run, status 2; a failure while it runs, or a signal, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        // Before any thread is started.
        let stop = Stop::on_signals(BULK_DIRECTORIES)?;
        let writer = places::writer(&self.dir, &self.pid)?;
        let readers = self.read_dir.iter().map(|dir| places::reader(dir, &self.dir, &self.pid));
        let readers: Vec<Place> = readers.collect::<CommandResult<_>>()?;
        let first = readers.first().unwrap_or(&writer);
        let other = self.others.then(|| self.other(first)).transpose()?;
        let bar = bar("{msg:<32} {wide_bar} {bytes}/{total_bytes} {percent:>3}%");
        let bulk = Bulk {
            writer: &writer,
            readers: &readers,
            sizes: self.size.clone(),
            runs: self.runs,
            other: other.as_deref(),
            progress: &|progress| tell(&bar, &progress),
            stop: stop.flag(),
        };
        bar.set_length(bulk.bytes());
        let report = bulk.run();
        bar.finish_and_clear();
        output::show(json, &Answer(report.map_err(failed)?));
        Ok(())
    }

    /// The small operation: calls to the server of a mount of Andrew; elsewhere the status of the directory.
    fn other(&self, place: &Place) -> CommandResult<Box<dyn SmallOperation>> {
        match Statuses::of(&place.directory, &self.security)? {
            Some(statuses) => Ok(Box::new(statuses)),
            None => Ok(Box::new(StatOf(place.directory.clone()))),
        }
    }
}

fn failed(error: LabError) -> CommandError {
    CommandError::failed(format!("bench: {error}"))
}

fn tell(bar: &ProgressBar, progress: &Progress) {
    bar.inc(progress.bytes);
    if progress.bytes == 0 {
        let Progress { size_bytes, run, operation, .. } = progress;
        bar.set_message(format!("{} run {} {operation}", andrew::size::show(*size_bytes), run + 1));
    }
}

pub(crate) fn length(text: &str) -> Result<u64, String> {
    match andrew::size::parse(text)? {
        0 => Err("a file to measure has at least one byte".to_owned()),
        bytes => Ok(bytes),
    }
}

fn named_process(text: &str) -> Result<(String, u32), String> {
    let parsed = text.split_once('=').and_then(|(name, pid)| Some((name, pid.parse().ok()?)));
    match parsed {
        Some((name, pid)) if !name.is_empty() && pid > 0 => Ok((name.to_owned(), pid)),
        _ => Err(format!("'{text}' is not like client=4711")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_processes_are_read_as_people_write_them() {
        assert_eq!(length("10M"), Ok(10 << 20));
        assert!(length("0").is_err() && length("much").is_err());
        assert_eq!(named_process("server=17"), Ok(("server".to_owned(), 17)));
        for text in ["17", "=17", "server=", "server=0", "server=x"] {
            assert!(named_process(text).is_err(), "{text}");
        }
    }
}
