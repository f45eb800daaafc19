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
fn the_pages_tell_when_and_how_long_and_round_what_has_no_digits() {
    let mut one = result("gibson97.table2", Outcome::Failed { error: "no".into() });
    (one.began, one.seconds) = ("2026-11-23T07:08:09.123456789Z".into(), 2.345_678);
    let Pages { html, markdown, .. } = pages(&[one, result("howard88.table5", Outcome::Description)]);
    for page in [&html, &markdown] {
        assert_eq!(page.matches("Began ").count(), 1, "a description took no time");
        assert!(page.contains("Began 2026-11-23 07:08:09 UTC, took 2.35 s."));
        assert!(page.contains("“Not at hand” is"));
    }
    assert!(
        markdown.contains("(#gibson97.fig7): not run") && markdown.contains("<a id=\"gibson97.fig7\"></a>")
    );
    let shown: Vec<String> =
        [227.25, 0.333_333, 50.9, 7.0, 0.0, 6_676_479.0, 0.001_234].map(shown::rounded).into();
    assert_eq!(shown, ["227", "0.333", "50.9", "7", "0", "6676479", "0.00123"]);
}

#[test]
fn every_box_that_scrolls_is_reached_by_keyboard_and_every_heading_of_a_table_says_of_what() {
    let html = pages(&[]).html;
    assert_eq!(
        html.matches("class=\"scroll\"").count(),
        html.matches("role=\"region\" tabindex=\"0\"").count()
    );
    assert!(!html.contains("<th>") && !html.contains("<th class"), "each has a scope");
    for one in ["<main>", "</main>", "<nav aria-label=", "<th scope=\"row\"", "<th scope=\"col\""] {
        assert!(html.contains(one), "{one}");
    }
    assert_eq!(html.matches("<style>").count(), 1, "rules of a plot would be rules of the page");
}

#[test]
fn a_plot_that_stands_alone_has_its_own_colours() {
    let plots = pages(&[]).plots;
    assert!(plots.values().all(|plot| plot.matches("prefers-color-scheme: dark").count() == 1));
}

/// There are eight colours; the ninth column and the tenth look like none of them.
#[test]
fn no_two_columns_of_a_plot_look_alike() {
    let mut fig7 =
        Sheet::new(&[("trace", ""), ("client_minutes", ""), ("what", ""), ("value", ""), ("value_ci90", "")]);
    for trace in ["NFS", "AFS"] {
        for organisation in ["SAD", "NetSCSI", "NASD", "SID", "NASD_groups"] {
            for minutes in [20.0, 80.0] {
                let what = format!("{organisation}, processor, s");
                fig7.rows.push(vec![
                    trace.into(),
                    minutes.into(),
                    what.as_str().into(),
                    minutes.into(),
                    1.0.into(),
                ]);
            }
        }
    }
    let ran = Outcome::Ran { sheet: fig7, notes: Vec::new() };
    let plot = &pages(&[result("gibson97.fig7", ran)]).plots["gibson97.fig7.svg"];
    let lines = |name: &str| {
        // The legend's lines of a series stand before its name.
        let before = plot.split(name).next().unwrap();
        before[before.rfind("</text>").unwrap()..].matches("<polyline").count()
    };
    let names = ["nfs NetSCSI, here", "nfs NASD groups, here", "afs SID, here", "afs NASD groups, here"];
    assert_eq!(names.map(lines), [1, 1, 2, 2], "{plot}");
}

#[test]
fn what_only_a_result_has_is_plotted_beside_the_papers_columns() {
    let mut fig1 = Sheet::new(&[("load_units", ""), ("revised", "%"), ("measured", "%")]);
    fig1.rows.push(vec![500.0.into(), 4000.0.into(), 3000.0.into()]);
    let mut fig7 =
        Sheet::new(&[("trace", ""), ("client_minutes", ""), ("what", ""), ("value", ""), ("value_ci90", "")]);
    for (what, value) in [("SAD, processor, s", 58.0), ("SAD, elapsed, s", 61.0), ("largest SAD / NASD", 9.0)]
    {
        fig7.rows.push(vec!["NFS".into(), 90.0.into(), what.into(), value.into(), 2.0.into()]);
    }
    let mut fig6 = Sheet::new(&[
        ("client_minutes", ""),
        ("nfs_SAD", "s"),
        ("nfs_SAD_drawn", "s"),
        ("nfs_SAD_drawn_ci90", "s"),
    ]);
    fig6.rows.push(vec![90.0.into(), 29.0.into(), 31.0.into(), 2.0.into()]);
    let ran = |id, sheet| result(id, Outcome::Ran { sheet, notes: Vec::new() });
    let plots =
        pages(&[ran("howard88.fig1", fig1), ran("gibson97.fig6", fig6), ran("gibson97.fig7", fig7)]).plots;
    assert_eq!(plots["gibson97.fig6.svg"].matches(", here").count(), 1, "the draws stand for the means");
    assert!(plots["howard88.fig1.svg"].contains("measured, here"));
    let plot = &plots["gibson97.fig7.svg"];
    assert!(plot.contains("nfs SAD, here") && !plot.contains("paper") && !plot.contains("afs"), "{plot}");
    assert!(!pages(&[]).plots.contains_key("gibson97.fig7.svg"), "the paper tells no points");
}

/// What is a thousandth of the paper's has a shape too: the axis is logarithmic then. Not where a value is zero.
#[test]
fn what_lies_far_below_the_papers_is_not_a_line_on_the_ground() {
    let plotted = |last: f64| {
        let mut sheet = Sheet::new(&[("file_bytes", "bytes"), ("andrew_cold", "ms")]);
        sheet.rows.push(vec![3.0.into(), 0.25.into()]);
        sheet.rows.push(vec![24576.0.into(), last.into()]);
        let mut pages = pages(&[result("howard88.table14", Outcome::Ran { sheet, notes: Vec::new() })]);
        pages.plots.remove("howard88.table14.svg").unwrap()
    };
    // The numbers on the axis: powers of ten, or in equal steps.
    let has = |plot: &str, label: &str| plot.lines().any(|line| line.trim() == label);
    assert!(has(&plotted(0.5), "1") && !has(&plotted(0.5), "200"));
    assert!(has(&plotted(0.0), "200") && !has(&plotted(0.0), "1"));
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
    assert!([&html, &markdown].iter().all(|page| page.contains("Refused: it lacks a month of use")));
    assert!(plots["howard88.table14.svg"].contains("andrew warm, here"));
    assert!(!plots["gibson97.fig6.svg"].contains("here"));
    assert!(html.contains(">load units</th>") && !html.contains("load units, load units"));
}
