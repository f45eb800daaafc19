//! `andrew vos dump`: writes a dump of a volume.

use super::dump_files::Sink;
use super::ops::Ops;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::DumpOptions;
use afs_wire::ids::UnixSeconds;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew vos dump`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without a file, or with -, the dump goes to standard output. The file appears only when the dump is complete.

Examples:
  andrew vos dump projects -file projects.dump
  andrew vos dump projects.readonly | ssh backup 'cat > projects.dump'
  andrew vos dump projects -time \"11/21/2026 04:01\" -file since.dump")]
pub struct Args {
    /// The volume's name or number
    #[arg(value_name = "NAME", required_unless_present = "id")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    id: Option<String>,
    /// Only changes since this date: "mm/dd/yyyy hh:MM" in local time, or seconds since 1970; 0 is everything
    #[arg(long, value_name = "DATE", default_value = "0", value_parser = super::dates::parse)]
    time: UnixSeconds,
    /// File to write to
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Server to read from
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Partition to read from
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Dump a temporary clone, so that the volume's clients need not wait
    #[arg(long)]
    clone: bool,
    /// Leave out directories that have not changed
    #[arg(long)]
    omitdirs: bool,
}

#[derive(Serialize)]
struct Dumped {
    volume: String,
    #[serde(rename = "dump_bytes")]
    bytes: u64,
    from: String,
    file: String,
}

impl Args {
    /// Dumps the volume.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::dump`]; or the file cannot be written.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let volume = self.bare.or(self.id).unwrap_or_default();
        let options = DumpOptions {
            volume: volume.clone(),
            place: ops.place(self.server.as_deref(), self.partition.as_deref())?,
            since: self.time,
            clone: self.clone,
            omit_directories: self.omitdirs,
        };
        let file = self.file.filter(|f| f.as_os_str() != "-");
        let mut sink = Sink::open(file.as_deref())?;
        let done = ops.run(|admin| {
            let sink = &mut sink;
            async move { admin.dump(&options, sink).await }
        })?;
        sink.finish()?;
        let Some(file) = file else { return Ok(()) };
        let (from, file) = (done.place.to_string(), file.display().to_string());
        output::show(json, &Dumped { volume, bytes: done.bytes, from, file });
        Ok(())
    }
}

impl fmt::Display for Dumped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Dumped volume {} from {} into {}: {} bytes",
            self.volume, self.from, self.file, self.bytes
        )
    }
}

/// Error for a file or pipe.
pub(super) fn cannot(what: &str, file: &std::path::Path, error: &std::io::Error) -> CommandError {
    CommandError::usage(format!("vos: cannot {what} {}: {error}", file.display()))
}
