//! `andrew vos restore`: restores a volume from a dump.

use super::dump_files::Source;
use super::ops::{Ops, volume_id};
use super::site_words::{NamedSite, SiteWords};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::{Overwrite, RestoreDate, RestoreOptions};
use clap::ValueEnum;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew vos restore`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Without a file, or with -, the dump comes from standard input. A dump that is damaged or ends early creates no volume,
and leaves a volume that it was to replace unchanged.

Examples:
  andrew vos restore 192.0.2.1 a projects -file projects.dump
  andrew vos restore 192.0.2.1 a projects -file since.dump -overwrite incremental")]
pub struct Args {
    #[command(flatten)]
    at: SiteWords,
    /// Name, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// File to read the dump from
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Number of the volume [default: that of the entry with the name, or the next free one]
    #[arg(long, value_name = "NUMBER")]
    id: Option<String>,
    /// What to do with an existing volume: leave it (abort), replace it (full), or apply the changes (incremental)
    #[arg(long, value_name = "HOW")]
    overwrite: Option<OverwriteChoice>,
    /// Leave it off line
    #[arg(long)]
    offline: bool,
    /// Restore it as a read-only volume
    #[arg(long)]
    readonly: bool,
    /// Date of creation
    #[arg(long, value_name = "WHICH")]
    creation: Option<DateChoice>,
    /// Date of the last change [default: dump]
    #[arg(long, value_name = "WHICH")]
    lastupdate: Option<DateChoice>,
    /// Leave the volume at its old site if the location database names another
    #[arg(long)]
    nodelete: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum OverwriteChoice {
    #[value(alias = "a")]
    Abort,
    #[value(alias = "f")]
    Full,
    #[value(alias = "i")]
    Incremental,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DateChoice {
    Dump,
    Keep,
    New,
}

impl From<DateChoice> for RestoreDate {
    fn from(which: DateChoice) -> Self {
        match which {
            DateChoice::Dump => Self::Dump,
            DateChoice::Keep => Self::Keep,
            DateChoice::New => Self::New,
        }
    }
}

#[derive(Serialize)]
struct Restored {
    #[serde(rename = "id")]
    volume: u32,
    name: String,
    place: String,
    #[serde(rename = "dump_bytes")]
    bytes: u64,
}

impl Args {
    /// Restores the volume.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::restore`]; or the file cannot be read or is not a dump.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let NamedSite { volume, server, partition, .. } = self.at.with(self.name);
        let name = volume.ok_or_else(|| {
            CommandError::usage(
                "vos: restore needs a server, a partition and a name; see `andrew vos restore --help`",
            )
        })?;
        let place = ops.needed_place(server.as_deref(), partition.as_deref())?;
        let options = RestoreOptions {
            name: name.clone(),
            place,
            id: self.id.as_deref().map(volume_id).transpose()?,
            overwrite: match self.overwrite {
                None | Some(OverwriteChoice::Abort) => Overwrite::Refuse,
                Some(OverwriteChoice::Full) => Overwrite::Full,
                Some(OverwriteChoice::Incremental) => Overwrite::Incremental,
            },
            read_only: self.readonly,
            offline: self.offline,
            creation: self.creation.map(RestoreDate::from),
            last_update: self.lastupdate.map(RestoreDate::from),
            keep_old: self.nodelete,
        };
        let mut source = Source::open(self.file.as_deref().filter(|f| f.as_os_str() != "-"))?;
        let done = ops.run(|admin| {
            let source = &mut source;
            async move { admin.restore(&options, source).await }
        })?;
        output::show(
            json,
            &Restored { volume: done.volume.0, name, place: place.to_string(), bytes: done.bytes },
        );
        Ok(())
    }
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Restored volume {} ({}) on {}", self.name, self.volume, self.place)
    }
}
