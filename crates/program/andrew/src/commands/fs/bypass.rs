//! `andrew fs bypass`.

use super::attribute;
use crate::error::{CommandError, CommandResult};
use crate::output;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs bypass`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew fs bypass [PATH]...\n       andrew fs bypass on|off|auto PATH...",
    after_help = "\
What is read of a file that bypasses the disk cache is fetched from the server each time, and takes no
space in the cache. While a file is open for writing on this machine it is cached.

on:    the files bypass the cache
off:   they do not
auto:  the first of these rules that applies decides:
       a file whose name begins with ++ is cached;
       a file whose name begins with __ bypasses the cache;
       files in a volume whose name begins with __ bypass it;
       files of at least the size --bypass-size of the mount bypass it;
       what is read once from one end to the other, and is longer than the share --bypass-streams of the
       cache, bypasses it.

A request needs the right to read the file. It holds on this machine for all its users, until the mount
is stopped or the file has long been out of use (the mount remembers 100,000 files); it is not kept.

Examples:
  andrew fs bypass ~/afs/films/*
  andrew fs bypass on ~/afs/films/long.mkv"
)]
pub struct Args {
    /// What to request, then files; without a request the files to show [default: the current directory]
    #[arg(value_name = "REQUEST PATH")]
    words: Vec<PathBuf>,
}

/// The requests that a mount takes.
const REQUESTS: [&str; 3] = ["on", "off", "auto"];

/// What a mount says of a file.
#[derive(Deserialize, Serialize)]
struct Told {
    /// `on`, `off` or `auto`.
    request: String,
    bypassed: bool,
    /// The rule that decides: `request`, `file name`, `volume name`, `length`, `open for writing` or `none`.
    reason: String,
}

#[derive(Serialize)]
struct Shown {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    #[serde(flatten)]
    told: Told,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Vec<Shown>);

impl Args {
    /// Makes the request for the paths, or shows what holds for them.
    ///
    /// # Errors
    /// A request without a path; the first path that is not in AFS, is no file, or must not be read.
    pub fn run(self, json: bool) -> CommandResult {
        let (request, paths) = split(self.words);
        let Some(request) = request else {
            let shown = paths.into_iter().map(show).collect::<CommandResult<_>>()?;
            output::show(json, &Answer(shown));
            return Ok(());
        };
        if paths.is_empty() {
            return Err(CommandError::usage(format!(
                "fs: bypass {request} needs a file; see `andrew fs bypass --help`"
            )));
        }
        paths.iter().try_for_each(|path| attribute::set(path, "afs.bypass", request.as_bytes()))
    }
}

/// The request, if there is one, and the paths; without either the current directory.
fn split(mut words: Vec<PathBuf>) -> (Option<&'static str>, Vec<PathBuf>) {
    let first = words.first().and_then(|word| word.to_str());
    match REQUESTS.into_iter().find(|request| Some(*request) == first) {
        Some(request) => {
            words.remove(0);
            (Some(request), words)
        }
        None if words.is_empty() => (None, vec![PathBuf::from(".")]),
        None => (None, words),
    }
}

fn show(path: PathBuf) -> CommandResult<Shown> {
    let text = attribute::get_text(&path, "afs.bypass")?;
    match serde_json::from_str(&text) {
        Ok(told) => Ok(Shown { path, told }),
        Err(error) => {
            Err(CommandError::failed(format!("fs: '{}' has an unknown answer: {error}", path.display())))
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Shown { path, told: Told { request, bypassed, reason } } in &self.0 {
            let how = if *bypassed { "bypasses the cache" } else { "is cached" };
            write!(f, "{} {how}", path.display())?;
            match reason.as_str() {
                "none" => writeln!(f, " (request: {request})")?,
                _ => writeln!(f, " by its {reason} (request: {request})")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_comes_first_and_a_file_of_that_name_has_a_path() {
        let words = |words: &[&str]| {
            let (request, paths) = split(words.iter().map(PathBuf::from).collect());
            (request, paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(words(&["on", "a", "b"]), (Some("on"), vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(words(&["a", "on"]), (None, vec!["a".to_owned(), "on".to_owned()]));
        assert_eq!(words(&["./off"]), (None, vec!["./off".to_owned()]));
        assert_eq!(words(&[]), (None, vec![".".to_owned()]));
        assert_eq!(words(&["auto"]), (Some("auto"), vec![]));
    }

    #[test]
    fn the_text_names_the_decision_and_its_rule() {
        let told = |request: &str, bypassed, reason: &str| Shown {
            path: "a".into(),
            told: Told { request: request.into(), bypassed, reason: reason.into() },
        };
        let answer = Answer(vec![
            told("on", true, "request"),
            told("auto", true, "volume name"),
            told("auto", false, "none"),
        ]);
        assert_eq!(
            answer.to_string(),
            "a bypasses the cache by its request (request: on)\n\
             a bypasses the cache by its volume name (request: auto)\n\
             a is cached (request: auto)\n"
        );
    }
}
