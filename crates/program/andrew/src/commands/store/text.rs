//! Text of reports on stores.

use afs_cell::stores::{LostBatchesOf, StoreReport};
use serde::Serialize;
use std::fmt;

/// Lost parts of an index that are shown as text; JSON has all.
const PARTS_SHOWN: usize = 20;

/// Reports on the stores of a directory.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct Reports(pub(super) Vec<StoreReport>);

impl fmt::Display for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|report| one(report, f))
    }
}

/// A report on one store.
pub(super) fn one(report: &StoreReport, f: &mut impl fmt::Write) -> fmt::Result {
    let path = report.path.display();
    if report.whole {
        return writeln!(f, "{path}: whole, with all changes up to batch {}", report.through);
    }
    writeln!(f, "{path}: damaged")?;
    for damage in &report.damage {
        writeln!(f, "  {} {}", damage.file, damage.what)?;
    }
    if report.unlisted > 0 {
        writeln!(f, "  and {} more damaged parts", report.unlisted)?;
    }
    report.lost_batches.iter().try_for_each(|lost| writeln!(f, "  lost: {}", batches(lost)))?;
    let parts = report.lost_rows.iter();
    parts.take(PARTS_SHOWN).try_for_each(|part| writeln!(f, "  lost, as far as it was there: {part}"))?;
    match report.lost_rows.len().saturating_sub(PARTS_SHOWN) {
        0 => {}
        more => writeln!(f, "  lost: {more} more parts of the index")?,
    }
    if report.lost_batches.is_empty() && report.lost_rows.is_empty() {
        writeln!(f, "  nothing is known to be lost")?;
    }
    writeln!(
        f,
        "  can be kept: {} rows of the index, and all changes up to batch {}",
        report.rows, report.through
    )?;
    match report.later {
        0 => Ok(()),
        later => {
            writeln!(f, "  after what is lost: {later} whole batches, which a repair with --all applies too")
        }
    }
}

fn batches(lost: &LostBatchesOf) -> String {
    match lost.last {
        Some(last) if last == lost.first => format!("batch {last} of acknowledged changes"),
        Some(last) => format!("the batches {} to {last} of acknowledged changes", lost.first),
        None => format!(
            "whatever was acknowledged from batch {} on, of which the number is not known",
            lost.first
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_cell::stores::StoreDamage;

    #[test]
    fn a_report_names_the_file_what_is_lost_and_what_can_be_kept() {
        let lost = LostBatchesOf { first: 81, last: Some(81) };
        let damage =
            StoreDamage { file: "log.a".into(), what: "is broken between the batches 80 and 82".into() };
        let report = StoreReport {
            path: "/vicepb/index".into(),
            whole: false,
            damage: vec![damage],
            unlisted: 0,
            through: 80,
            lost_batches: vec![lost],
            later: 9,
            rows: 7,
            lost_rows: vec!["vnode 5 of home.alice (7)".into(); PARTS_SHOWN + 2],
        };
        let text = Reports(vec![report]).to_string();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "/vicepb/index: damaged",
                "  log.a is broken between the batches 80 and 82",
                "  lost: batch 81 of acknowledged changes",
            ]
        );
        assert_eq!(
            lines[lines.len() - 3..],
            [
                "  lost: 2 more parts of the index",
                "  can be kept: 7 rows of the index, and all changes up to batch 80",
                "  after what is lost: 9 whole batches, which a repair with --all applies too",
            ]
        );
    }
}
