//! What follows from Table 7: cost of an operation, other rules for opens, and the work of many client-minutes (Figure 6).

use super::inputs::Inputs;
use super::work::{SYSTEMS, TraceKind, tenths};
use crate::papers::{Cell, PaperError, Sheet};

/// Clock of the file manager in the paper's replay, in cycles a second.
const CLOCK: f64 = 150e6;

const TRACES: [(TraceKind, &str); 2] = [(TraceKind::Nfs, "NFS"), (TraceKind::Afs, "AFS")];

/// Cost of each operation that Table 7 implies.
///
/// # Errors
/// A number is not in the data.
pub fn derived_costs(inputs: Inputs<'_>) -> Result<Sheet, PaperError> {
    let mut sheet = Sheet::new(&[("trace", ""), ("operation", ""), ("kcycles", "kcycles")]);
    for (trace, name) in TRACES {
        for operation in inputs.operations(trace.table7())? {
            let cell = |column| inputs.number(trace.table7(), operation, column);
            let work = if operation == "Open" { cell("NASD")? } else { cell("SAD")? };
            let cost = tenths(work / cell("count_k")? * 1e3);
            sheet.rows.push(vec![name.into(), operation.into(), cost]);
        }
    }
    Ok(sheet)
}

/// Work in the system with capabilities under other rules for opens: as printed, as Table 6 rules, and without.
///
/// # Errors
/// A number is not in the data.
pub fn derived_opens(inputs: Inputs<'_>) -> Result<Sheet, PaperError> {
    let mut sheet =
        Sheet::new(&[("trace", ""), ("variant", ""), ("NASD", "Gcycles"), ("NASD_pct", "%"), ("factor", "")]);
    for (trace, name) in TRACES {
        let cell = |row, column| inputs.number(trace.table7(), row, column);
        let (sad, nasd, opens) = (cell("total", "SAD")?, cell("total", "NASD")?, cell("Open", "NASD")?);
        let mut variants = vec![("as printed", nasd)];
        if trace == TraceKind::Nfs {
            let getattr = cell("AttrRead", "SAD")? / cell("AttrRead", "count_k")?;
            variants.push(("open = getattr", nasd - opens + cell("Open", "count_k")? * getattr));
        }
        variants.push(("no open", nasd - opens));
        for (variant, work) in variants {
            let factor = Cell::from((100.0 * sad / work).round() / 100.0);
            let share = tenths(100.0 * work / sad);
            sheet.rows.push(vec![name.into(), variant.into(), tenths(work), share, factor]);
        }
    }
    Ok(sheet)
}

/// Processor seconds of the file manager for a number of busy client-minutes (Figure 6): means, from Tables 5 and 7.
///
/// # Errors
/// A number is not in the data.
pub fn figure6(inputs: Inputs<'_>) -> Result<Sheet, PaperError> {
    let mut sheet = Sheet::new(&[("client_minutes", "")]);
    let mut seconds = Vec::new();
    for (trace, _) in TRACES {
        let minutes = inputs.number("table5", "busy client-minutes", trace.column())?;
        for system in SYSTEMS {
            let work = inputs.number(trace.table7(), "total", system)? * 1e9;
            seconds.push((trace, work / minutes / CLOCK));
            sheet.columns.push(format!("{}_{system}", trace.column()));
            sheet.units.push("s".into());
        }
    }
    for minutes in [10.0, 20.0, 40.0, 60.0, 80.0, 90.0, 100.0, 120.0] {
        // The paper's draws of NFS end at 100.
        let of = |(trace, one): &(TraceKind, f64)| match trace {
            TraceKind::Nfs if minutes > 100.0 => Cell::NotAtHand,
            _ => tenths(minutes * one),
        };
        sheet.rows.push([Cell::from(minutes)].into_iter().chain(seconds.iter().map(of)).collect());
    }
    Ok(sheet)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    /// Compares the numbers of a computed sheet with those of an entry, in the columns that both have.
    fn compare(inputs: Inputs<'_>, entry: &str, got: &Sheet, slack: f64) {
        let want = inputs.sheet(entry).unwrap();
        assert_eq!(got.rows.len(), want.rows.len(), "{entry}");
        let mut compared = 0;
        for (mine, printed) in got.rows.iter().zip(&want.rows) {
            for (at, column) in got.columns.iter().enumerate() {
                let other = want.column(column).and_then(|at| printed[at].number());
                if let (Some(mine), Some(other)) = (mine[at].number(), other) {
                    assert!((mine - other).abs() < slack, "{entry} {column}: {mine} {other}");
                    compared += 1;
                }
            }
        }
        assert!(compared >= got.rows.len(), "{entry}: {compared}");
    }

    #[test]
    fn figure_6_and_the_derived_tables_follow_from_table_7() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        compare(inputs, "fig6", &figure6(inputs).unwrap(), 0.06);
        compare(inputs, "derived-costs", &derived_costs(inputs).unwrap(), 0.06);
        compare(inputs, "derived-nfs-nasd", &derived_opens(inputs).unwrap(), 0.06);
    }
}
