//! `andrew-lab list`.

use super::choice::chosen;
use super::embedded;
use afs_lab::catalogue::Method;
use afs_lab::papers::{Kind, Paper};
use andrew::error::CommandResult;
use andrew::output;
use serde::Serialize;
use std::fmt;

/// Options of `andrew-lab list`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Tables, figures or papers, such as howard88.table6 or citi01-3
    #[arg(value_name = "ID", default_value = "all")]
    ids: Vec<String>,
}

impl Args {
    /// Prints the list.
    ///
    /// # Errors
    /// An id that does not exist, status 2.
    pub fn run(self, json: bool) -> CommandResult {
        let papers = embedded()?;
        let lines = chosen(&self.ids)?.into_iter().filter_map(|one| {
            let entry = papers.iter().flat_map(|paper| &paper.entries).find(|entry| entry.id == one.id)?;
            let (state, reason) = state(one.method);
            Some(Line {
                id: one.id,
                kind: entry.kind,
                title: entry.title.clone(),
                measures: one.measures,
                state,
                reason,
            })
        });
        output::show(json, &List(lines.collect(), citations(&papers)));
        Ok(())
    }
}

/// Whether an experiment can run here, and why not.
fn state(method: Method) -> (State, Option<String>) {
    match method {
        Method::Description => (State::Description, None),
        Method::Lacks(what) => (State::Refused, Some(what.to_owned())),
        _ if method.needs_costs() => (State::NeedsCosts, None),
        _ if method.needs_other() => (State::NeedsOther, None),
        _ if method.needs_mount() => (State::NeedsMount, None),
        _ => (State::Runs, None),
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It can be run here.
    Runs,
    /// It can, with a directory in a mount of Andrew.
    NeedsMount,
    /// It can, with another file system to compare with.
    NeedsOther,
    /// It can, with costs measured on a server.
    NeedsCosts,
    /// It cannot.
    Refused,
    /// There is nothing to run.
    Description,
}

#[derive(Debug, Serialize)]
struct Line {
    id: &'static str,
    kind: Kind,
    title: String,
    measures: &'static str,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Short name and citation of each paper.
type Citations = Vec<(String, String)>;

fn citations(papers: &[Paper]) -> Citations {
    papers.iter().map(|paper| (paper.id.clone(), paper.citation.clone())).collect()
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<Line>, #[serde(skip)] Citations);

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (paper, citation) in &self.1 {
            let of_it = |line: &&Line| line.id.split('.').next() == Some(paper);
            if self.0.iter().any(|line| of_it(&line)) {
                writeln!(f, "{citation}")?;
            }
            for line in self.0.iter().filter(of_it) {
                writeln!(f, "  {:<30} {}", line.id, line.measures)?;
                match (line.state, &line.reason) {
                    (State::Runs, _) => writeln!(f, "{:33}can be run here", "")?,
                    (State::NeedsMount, _) => {
                        writeln!(f, "{:33}can be run with a directory in a mount of Andrew (--mount)", "")?;
                    }
                    (State::NeedsOther, _) => {
                        writeln!(
                            f,
                            "{:33}can be run beside another file system, such as NFS (--beside)",
                            ""
                        )?;
                    }
                    (State::NeedsCosts, _) => {
                        writeln!(f, "{:33}can be run with costs measured on a server (--costs)", "")?;
                    }
                    (State::Description, _) => writeln!(f, "{:33}nothing to measure", "")?,
                    (State::Refused, reason) => {
                        writeln!(f, "{:33}refused: it lacks {}", "", reason.as_deref().unwrap_or_default())?;
                    }
                }
            }
        }
        Ok(())
    }
}
