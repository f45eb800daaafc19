//! The report as Markdown, with references to the plots beside it.

use super::html::{capital, follows};
use super::shown::{columns, rounded};
use super::{Item, LEGEND, Report, environment_line};
use crate::papers::{Paper, Sheet};
use crate::runs::Outcome;
use std::fmt::Write;

pub(super) fn page(report: &Report<'_>) -> String {
    let mut out = String::from("# The experiments of three papers, repeated\n\n");
    for environment in report.environments() {
        let _ = writeln!(out, "{}\n", environment_line(environment));
    }
    let _ = writeln!(out, "{LEGEND}\n");
    report.papers.iter().for_each(|paper| contents(&mut out, report, paper));
    for paper in report.papers {
        let _ = writeln!(out, "\n## {}", paper.citation);
        report.of_paper(paper).for_each(|item| section(&mut out, &item));
        claims(&mut out, paper);
    }
    out
}

/// Links to the entries of a paper, with what came of each.
fn contents(out: &mut String, report: &Report<'_>, paper: &Paper) {
    let _ = writeln!(out, "- {}", paper.citation);
    for item in report.of_paper(paper) {
        let _ = writeln!(out, "  - [{}](#{}): {}", item.entry.title, item.entry.id, item.state());
    }
}

fn section(out: &mut String, item: &Item<'_>) {
    let entry = item.entry;
    let _ = writeln!(out, "\n<a id=\"{}\"></a>", entry.id);
    let _ = writeln!(out, "\n### {} (`{}`): {}\n", entry.title, entry.id, item.state());
    let _ = writeln!(out, "Measured: {}. {}.\n", item.experiment.measures, capital(&item.place()));
    table(out, "Paper", &entry.sheet);
    if let Some(Outcome::Ran { sheet, notes }) = item.result.map(|result| &result.outcome) {
        let quick = item.result.is_some_and(|result| result.quick);
        table(out, if quick { "Here (a quick run)" } else { "Here" }, sheet);
        notes.iter().for_each(|note| _ = writeln!(out, "{note}\n"));
    }
    if item.plot().is_some() {
        let _ = writeln!(out, "![Plot of {}]({})\n", entry.id, item.plot_name());
    }
    if let Some(reason) = item.reason() {
        let _ = writeln!(out, "{}: {reason}\n", capital(item.state()));
    }
    if !entry.notes.is_empty() {
        let _ = writeln!(out, "{}\n", entry.notes);
    }
    item.time().iter().for_each(|time| _ = writeln!(out, "{time}\n"));
    item.remarks().iter().for_each(|remark| _ = writeln!(out, "- {remark}"));
}

fn table(out: &mut String, caption: &str, sheet: &Sheet) {
    let columns = columns(sheet);
    let _ = writeln!(out, "{caption}:\n");
    line(out, columns.iter().map(|column| column.name.clone()));
    line(out, columns.iter().map(|column| if column.is_number(sheet) { "---:" } else { "---" }.to_owned()));
    sheet.rows.iter().for_each(|row| line(out, columns.iter().map(|column| column.cell(row))));
    out.push('\n');
}

fn claims(out: &mut String, paper: &Paper) {
    out.push_str("\n### What the text says, and what its tables give\n\n");
    line(out, ["Section", "Claim", "Stated", "Computed", "Follows", "From"].map(str::to_owned));
    line(out, ["---", "---", "---:", "---:", "---", "---"].map(str::to_owned));
    for claim in &paper.claims {
        let (stated, computed) = (rounded(claim.stated), rounded(claim.computed));
        let follows = follows(claim.follows).to_owned();
        line(out, [claim.section.clone(), claim.says.clone(), stated, computed, follows, claim.from.clone()]);
    }
}

/// A line of a table.
fn line(out: &mut String, cells: impl IntoIterator<Item = String>) {
    for cell in cells {
        let _ = write!(out, "| {} ", cell.replace('|', "\\|").replace('\n', " "));
    }
    out.push_str("|\n");
}
