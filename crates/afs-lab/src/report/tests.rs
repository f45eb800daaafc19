//! Tests of the report.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use super::*;
use crate::papers::{Cell, Sheet, papers};
use crate::runs::{FORMAT, Outcome};

fn result(id: &str, outcome: Outcome) -> RunResult {
    let environment = Environment { version: "0.0-test".into(), ..Environment::default() };
    let began = "2026-11-23T00:00:00Z".to_owned();
    RunResult { format: FORMAT, id: id.into(), began, seconds: 1.0, quick: true, environment, outcome }
}

fn pages(results: &[RunResult]) -> Pages {
    let directory = tempfile::tempdir().unwrap();
    let folder = ResultFolder::create(directory.path()).unwrap();
    results.iter().for_each(|result| folder.write(result).unwrap());
    let papers = papers().unwrap();
    Report::of(&papers, &folder).pages()
}

#[test]
fn every_table_figure_claim_and_slip_is_in_both_pages() {
    let Pages { html, markdown, plots } = pages(&[]);
    for paper in papers().unwrap() {
        for entry in &paper.entries {
            assert!(html.contains(&format!("<section id=\"{}\">", entry.id)), "{}", entry.id);
            assert!(markdown.contains(&format!("(`{}`)", entry.id)), "{}", entry.id);
        }
        for text in
            paper.claims.iter().map(|claim| &claim.says).chain(paper.slips.iter().map(|slip| &slip.what))
        {
            assert!(html.contains(&html::escaped(text)) && markdown.contains(text.as_str()), "{text}");
        }
    }
    assert!(plots.len() > 12 && plots.values().all(|plot| plot.starts_with("<svg")), "{}", plots.len());
    for outside in ["http-equiv", "src=", "<script", "<link"] {
        assert!(!html.contains(outside), "{outside}: the page refers to nothing else");
    }
}

#[test]
fn numbers_obtained_here_stand_beside_the_papers_with_their_spread() {
    let mut sheet = Sheet::new(&[
        ("file_bytes", "bytes"),
        ("andrew_warm", "ms"),
        ("andrew_warm_min", "ms"),
        ("andrew_warm_max", "ms"),
    ]);
    sheet.rows.push(vec![3.0.into(), 0.25.into(), 0.125.into(), 0.5.into()]);
    sheet.rows.push(vec![1113.0.into(), Cell::NotAtHand, Cell::NotAtHand, Cell::NotAtHand]);
    let ran = Outcome::Ran { sheet, notes: vec!["A note <of> the run.".into()] };
    let Pages { html, markdown, plots } = pages(&[
        result("howard88.table14", ran),
        result("howard88.table2", Outcome::Refused { lacks: "a month of use".into() }),
    ]);
    assert!(
        html.contains("<td class=\"n\">0.25 (0.125–0.5)</td>") && markdown.contains("| 0.25 (0.125–0.5) ")
    );
    assert!(html.contains("160 ± 34.6") && html.contains("<i>not at hand</i>"));
    assert!(html.contains("A note &lt;of&gt; the run.") && html.contains("andrew 0.0-test"));
    assert!(html.contains("Refused: a month of use") && markdown.contains("Refused: a month of use"));
    assert!(plots["howard88.table14.svg"].contains("andrew warm, here"));
    assert!(!plots["gibson97.fig6.svg"].contains("here"));
}
