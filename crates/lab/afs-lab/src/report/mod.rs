//! Report: each table and figure with the paper's numbers beside those obtained here, as one HTML page and as Markdown.

mod axis;
mod chart;
mod charts;
mod drawing;
mod html;
mod markdown;
mod shown;

use crate::catalogue::{Experiment, experiment};
use crate::papers::{Entry, Paper};
use crate::runs::{Environment, Outcome, ResultFolder, RunResult};
use std::collections::BTreeMap;

/// What a report is made of.
pub struct Report<'a> {
    papers: &'a [Paper],
    results: BTreeMap<String, RunResult>,
}

/// The files of a report.
pub struct Pages {
    /// One page without references to other files.
    pub html: String,
    /// The same, with references to the plots.
    pub markdown: String,
    /// Plots by file name.
    pub plots: BTreeMap<String, String>,
}

impl<'a> Report<'a> {
    /// A report of the results in a folder; entries without one are told as not run.
    #[must_use]
    pub fn of(papers: &'a [Paper], folder: &ResultFolder) -> Self {
        let entries = papers.iter().flat_map(|paper| &paper.entries);
        let results = entries.filter_map(|entry| Some((entry.id.clone(), folder.read(&entry.id)?))).collect();
        Self { papers, results }
    }

    /// Results that the report has.
    #[must_use]
    pub fn results(&self) -> usize {
        self.results.len()
    }

    /// The files.
    #[must_use]
    pub fn pages(&self) -> Pages {
        let plots =
            self.items().filter_map(|item| Some((item.plot_name(), chart::alone(&item.plot()?)))).collect();
        Pages { html: html::page(self), markdown: markdown::page(self), plots }
    }

    /// All entries with their results.
    fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.papers.iter().flat_map(|paper| self.of_paper(paper))
    }

    fn of_paper<'b>(&'b self, paper: &'b Paper) -> impl Iterator<Item = Item<'b>> {
        paper.entries.iter().filter_map(move |entry| {
            let (experiment, result) = (experiment(&entry.id)?, self.results.get(&entry.id));
            let slips = paper.slips.iter().filter(|slip| slip.entry == entry.id);
            Some(Item { entry, experiment, result, slips: slips.map(|slip| slip.what.as_str()).collect() })
        })
    }

    /// What the results were obtained on, each once.
    fn environments(&self) -> Vec<&Environment> {
        let mut seen: Vec<&Environment> = Vec::new();
        for result in self.results.values() {
            if !seen.contains(&&result.environment) {
                seen.push(&result.environment);
            }
        }
        seen
    }
}

/// An entry, how it is repeated, and its result.
struct Item<'a> {
    entry: &'a Entry,
    experiment: &'static Experiment,
    result: Option<&'a RunResult>,
    slips: Vec<&'a str>,
}

impl Item<'_> {
    /// One word for what came of it.
    fn state(&self) -> &'static str {
        match self.result.map(|result| &result.outcome) {
            None => "not run",
            Some(Outcome::Ran { .. }) => "ran",
            Some(Outcome::Refused { .. }) => "refused",
            Some(Outcome::Failed { .. }) => "failed",
            Some(Outcome::Description) => "nothing to measure",
        }
    }

    /// Why there are no numbers.
    fn reason(&self) -> Option<String> {
        match &self.result?.outcome {
            Outcome::Refused { lacks } => Some(format!("it lacks {lacks}")),
            Outcome::Failed { error } => Some(error.clone()),
            Outcome::Ran { .. } | Outcome::Description => None,
        }
    }

    /// When it began, and how long it took; `None` if there is no result, or nothing was done.
    fn time(&self) -> Option<String> {
        let result = self.result.filter(|one| !matches!(one.outcome, Outcome::Description))?;
        let day_and_time = result.began.split_once('.').map_or(result.began.as_str(), |(whole, _)| whole);
        let shown = day_and_time.trim_end_matches('Z').replace('T', " ");
        let seconds = shown::rounded(result.seconds.max(1e-3));
        Some(format!("Began {shown} UTC, took {seconds} s."))
    }

    /// Page, section and origin of the paper's numbers.
    fn place(&self) -> String {
        let mut parts = Vec::new();
        for (word, value) in [("page", &self.entry.page), ("section", &self.entry.section)] {
            if !value.is_empty() {
                parts.push(format!("{word} {value}"));
            }
        }
        let source = match self.entry.source {
            crate::papers::Source::Table => "numbers as printed",
            crate::papers::Source::Text => "as far as the text says",
            crate::papers::Source::Derived => "computed from printed numbers",
        };
        parts.push(source.to_owned());
        parts.join(", ")
    }

    /// Remarks on the paper's numbers.
    fn remarks(&self) -> Vec<String> {
        let doubtful = self.entry.doubtful.iter().map(|what| format!("Doubtful: {what}."));
        let missing = self.entry.missing.iter().map(|what| format!("Not at hand: {what}."));
        let slips = self.slips.iter().map(|what| format!("Does not follow: {what}"));
        doubtful.chain(missing).chain(slips).collect()
    }

    fn plot_name(&self) -> String {
        format!("{}.svg", self.entry.id)
    }

    /// The plot as SVG, if there is one.
    fn plot(&self) -> Option<String> {
        let here = match self.result.map(|result| &result.outcome) {
            Some(Outcome::Ran { sheet, .. }) => Some(sheet),
            _ => None,
        };
        chart::svg(charts::of(&self.entry.id)?, &self.entry.sheet, here)
    }
}

/// What the words and signs of the tables mean.
const LEGEND: &str = "“Not at hand” is what the text at hand lacks or nobody measured. ± is a standard deviation, ± with \
                      (90 %) half of that interval of the mean, (a–b) the smallest and largest of the runs. Plots: circles \
                      are the paper's, triangles were obtained here.";

/// A line on a machine.
fn environment_line(environment: &Environment) -> String {
    let Environment { version, kernel, processor, cores, load_average, memory_bytes, peers } = environment;
    let load = load_average.as_ref().map_or_else(String::new, |load| format!("; load average {load} before"));
    let gib = *memory_bytes as f64 / f64::from(1 << 30);
    let others: Vec<String> = peers.iter().map(|(name, version)| format!("{name}: {version}")).collect();
    let others = if others.is_empty() { "none".to_owned() } else { others.join("; ") };
    format!(
        "andrew {version}, Linux {kernel}, {cores} × {processor}, {gib:.1} GiB of memory; other programs: {others}{load}"
    )
}

#[cfg(test)]
mod tests;
