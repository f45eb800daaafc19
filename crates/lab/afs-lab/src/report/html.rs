//! The report as one HTML page: styles and plots inside, for narrow and wide windows, light and dark.

use super::shown::{columns, rounded};
use super::{Item, LEGEND, Report, environment_line};
use crate::papers::{Follows, Paper, Sheet};
use crate::runs::Outcome;
use std::fmt::Write;

pub(super) fn page(report: &Report<'_>) -> String {
    let mut out = String::from("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<title>The experiments of three papers, repeated</title>\n<style>");
    out.push_str(include_str!("style.css"));
    out.push_str("</style></head><body>\n<header><h1>The experiments of three papers, repeated</h1>\n");
    for environment in report.environments() {
        paragraph(&mut out, "meta", &environment_line(environment));
    }
    paragraph(&mut out, "meta", LEGEND);
    out.push_str("</header>\n<nav aria-label=\"Tables and figures\">\n");
    for paper in report.papers {
        contents(&mut out, report, paper);
    }
    out.push_str("</nav>\n<main>\n");
    for paper in report.papers {
        let _ = writeln!(out, "<h2 id=\"{}\">{}</h2>", escaped(&paper.id), escaped(&paper.citation));
        report.of_paper(paper).for_each(|item| section(&mut out, &item));
        claims(&mut out, paper);
    }
    out.push_str("</main></body></html>\n");
    out
}

/// Links to the entries of a paper, with what came of each.
fn contents(out: &mut String, report: &Report<'_>, paper: &Paper) {
    let _ = writeln!(out, "<h2><a href=\"#{0}\">{0}</a></h2>\n<ul class=\"contents\">", escaped(&paper.id));
    for item in report.of_paper(paper) {
        let (id, state) = (escaped(&item.entry.id), item.state());
        let class = state.replace(' ', "-");
        let _ = writeln!(
            out,
            "<li><a href=\"#{id}\">{}</a> <span class=\"state {class}\">{state}</span></li>",
            escaped(&item.entry.title)
        );
    }
    out.push_str("</ul>\n");
}

fn section(out: &mut String, item: &Item<'_>) {
    let id = escaped(&item.entry.id);
    let state = item.state();
    let _ = writeln!(
        out,
        "<section id=\"{id}\"><h3>{} <code>{id}</code> <span class=\"state {}\">{state}</span></h3>",
        escaped(&item.entry.title),
        state.replace(' ', "-")
    );
    paragraph(out, "", &format!("Measured: {}. {}.", item.experiment.measures, capital(&item.place())));
    let here = match item.result.map(|result| &result.outcome) {
        Some(Outcome::Ran { sheet, notes }) => Some((sheet, notes)),
        _ => None,
    };
    out.push_str("<div class=\"tables\">\n");
    table(out, &id, "Paper", &item.entry.sheet);
    if let Some((sheet, _)) = here {
        let quick = item.result.is_some_and(|result| result.quick);
        table(out, &id, if quick { "Here (a quick run)" } else { "Here" }, sheet);
    }
    out.push_str("</div>\n");
    if let Some(svg) = item.plot() {
        let named = svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"Plot of {id}\" "), 1);
        let _ = writeln!(out, "<figure class=\"plot\">{}{named}</div></figure>", scroll_box(&id, "plot"));
    }
    if let Some(reason) = item.reason() {
        paragraph(out, "reason", &format!("{}: {reason}", capital(state)));
    }
    here.into_iter().flat_map(|(_, notes)| notes).for_each(|note| paragraph(out, "note", note));
    paragraph(out, "note", &item.entry.notes);
    item.time().into_iter().for_each(|time| paragraph(out, "note", &time));
    item.remarks().iter().for_each(|remark| paragraph(out, "remark", remark));
    out.push_str("</section>\n");
}

/// Beginning of a box that scrolls if the window is narrower than its content, by keyboard too.
fn scroll_box(id: &str, what: &str) -> String {
    let label = format!("{id}: {}", escaped(what));
    format!("<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\">")
}

fn table(out: &mut String, id: &str, caption: &str, sheet: &Sheet) {
    let columns = columns(sheet);
    let box_ = scroll_box(id, caption);
    let _ = writeln!(out, "{box_}<table><caption>{}</caption><thead><tr>", escaped(caption));
    let class = |number: bool| if number { " class=\"n\"" } else { "" };
    for column in &columns {
        let _ =
            write!(out, "<th scope=\"col\"{}>{}</th>", class(column.is_number(sheet)), escaped(&column.name));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &sheet.rows {
        out.push_str("<tr>");
        for (at, column) in columns.iter().enumerate() {
            let cell = column.cell(row);
            let shown = if cell == "not at hand" { "<i>not at hand</i>".to_owned() } else { escaped(&cell) };
            let class = class(column.is_number(sheet));
            // A row is named by its first cell.
            let _ = match at {
                0 => write!(out, "<th scope=\"row\"{class}>{shown}</th>"),
                _ => write!(out, "<td{class}>{shown}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Columns of the claims, with their classes.
const CLAIM: [(&str, &str); 6] =
    [("Section", ""), ("Claim", ""), ("Stated", "n"), ("Computed", "n"), ("Follows", ""), ("From", "")];

/// What the paper's text says of its tables.
fn claims(out: &mut String, paper: &Paper) {
    out.push_str("<section><h3>What the text says, and what its tables give</h3>\n");
    let _ = writeln!(out, "{}<table><thead><tr>", scroll_box(&escaped(&paper.id), "claims"));
    for (name, class) in CLAIM {
        let _ = write!(out, "<th scope=\"col\" class=\"{class}\">{name}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    for claim in &paper.claims {
        let (stated, computed) = (rounded(claim.stated), rounded(claim.computed));
        let _ = writeln!(
            out,
            "<tr><td>{}</td><th scope=\"row\">{}</th><td class=\"n\">{stated}</td><td class=\"n\">{computed}</td><td>{}</td><td>{}</td></tr>",
            escaped(&claim.section),
            escaped(&claim.says),
            follows(claim.follows),
            escaped(&claim.from)
        );
    }
    out.push_str("</tbody></table></div></section>\n");
}

pub(super) fn follows(follows: Follows) -> &'static str {
    match follows {
        Follows::Yes => "yes",
        Follows::Near => "nearly",
        Follows::No => "no",
    }
}

fn paragraph(out: &mut String, class: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<p{class}>{}</p>", escaped(text));
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Text with the characters escaped that HTML gives a meaning.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
