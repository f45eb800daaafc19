//! `andrew-lab report`.

use super::{embedded, failed_folder};
use afs_lab::report::Report;
use afs_lab::runs::ResultFolder;
use andrew::error::{CommandError, CommandResult};
use andrew::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew-lab report`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Writes index.html, one page without references to other files, index.md, and the plots as SVG beside it. Each table and
figure has the paper's numbers and those of this directory; what was not run says why.

Example:
  andrew-lab report andrew-lab")]
pub struct Args {
    /// Directory of the results, in which the report is written
    #[arg(value_name = "DIR", default_value = "andrew-lab")]
    directory: PathBuf,
}

impl Args {
    /// Writes the report.
    ///
    /// # Errors
    /// No such directory, status 2; it cannot be written, status 1.
    pub fn run(self, json: bool) -> CommandResult {
        if !self.directory.is_dir() {
            let shown = self.directory.display();
            return Err(CommandError::usage(format!(
                "{shown} is not a directory; `andrew-lab run all --out {shown}` makes one with results"
            )));
        }
        let folder = ResultFolder::create(&self.directory).map_err(failed_folder)?;
        let papers = embedded()?;
        let report = Report::of(&papers, &folder);
        let pages = report.pages();
        let mut files = vec![("index.html", &pages.html), ("index.md", &pages.markdown)];
        files.extend(pages.plots.iter().map(|(name, plot)| (name.as_str(), plot)));
        for (name, text) in files {
            folder.replace(name, text).map_err(failed_folder)?;
        }
        let page = folder.path("index.html").display().to_string();
        output::show(json, &Written { page, results: report.results(), plots: pages.plots.len() });
        Ok(())
    }
}

#[derive(Serialize)]
struct Written {
    page: String,
    results: usize,
    plots: usize,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, results, plots } = self;
        writeln!(f, "{page} has {results} results and {plots} plots; index.md beside it has the same")
    }
}
