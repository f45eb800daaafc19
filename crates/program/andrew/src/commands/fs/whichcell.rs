//! `andrew fs whichcell`: cells of paths.

use super::attribute;
use super::paths::Paths;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs whichcell`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs whichcell .\n\nExit status 0 says that a path is in AFS.")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct FileCell {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    cell: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct FileCells(Vec<FileCell>);

impl Args {
    /// Prints the cells.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| Ok(FileCell { cell: attribute::get_text(&path, "afs.cell")?, path });
        let places = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &FileCells(places));
        Ok(())
    }
}

impl fmt::Display for FileCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|p| writeln!(f, "File {} lives in cell '{}'", p.path.display(), p.cell))
    }
}
