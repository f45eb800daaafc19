//! Work of the file manager by operation and system (Table 7), from counts, costs and the rules of Table 6.

use super::costs::{cost, mean_bytes};
use super::inputs::Inputs;
use crate::papers::{Cell, PaperError, Sheet};

/// The systems of the model, as columns are named.
pub const SYSTEMS: [&str; 3] = ["SAD", "NetSCSI", "NASD"];

/// Most that the work of reads and writes may differ from the printed: their mean sizes are known to two digits only.
const SIZED_MAX: f64 = 0.05;

/// A trace of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceKind {
    /// NFS, Berkeley.
    Nfs,
    /// AFS, Carnegie Mellon.
    Afs,
}

impl TraceKind {
    /// Its column in Tables 2 and 5.
    #[must_use]
    pub fn column(self) -> &'static str {
        match self {
            Self::Nfs => "nfs",
            Self::Afs => "afs",
        }
    }

    pub(super) fn table6(self) -> &'static str {
        match self {
            Self::Nfs => "table6-nfs",
            Self::Afs => "table6-afs",
        }
    }

    pub(crate) fn table7(self) -> &'static str {
        match self {
            Self::Nfs => "table7-nfs",
            Self::Afs => "table7-afs",
        }
    }
}

/// Whether a computed number is the printed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// To the last digit.
    Digits,
    /// Within 5 %; the inputs have no more digits.
    Near,
    /// Not.
    No,
}

/// One operation of a trace: its cost and work in each system.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationWork {
    /// Name in Table 7.
    pub operation: String,
    /// Thousands of operations.
    pub count_k: f64,
    /// Thousand cycles of one, by system; 0 if nothing reaches the file manager.
    pub kcycles: [f64; 3],
    /// Work in 10⁹ cycles, by system.
    pub gcycles: [f64; 3],
    /// The printed work.
    pub printed: [f64; 3],
    /// Whether its cost depends on a size, by system.
    pub is_sized: [bool; 3],
}

impl OperationWork {
    /// Whether the work in a system is as printed.
    #[must_use]
    pub fn agreement(&self, system: usize) -> Agreement {
        let (got, want) = (self.gcycles[system], self.printed[system]);
        if (got * 10.0).round() == (want * 10.0).round() {
            Agreement::Digits
        } else if self.is_sized[system] && (got / want - 1.0).abs() < SIZED_MAX {
            Agreement::Near
        } else {
            Agreement::No
        }
    }

    /// Mean bytes of one, 0 if it has no data.
    pub(crate) fn mean_bytes(&self, inputs: Inputs<'_>, trace: TraceKind) -> Result<f64, PaperError> {
        mean_bytes(inputs, trace, &self.operation)
    }

    /// The agreement of all systems.
    fn agreements(&self) -> String {
        let wrong: Vec<&str> =
            (0..3).filter(|s| self.agreement(*s) == Agreement::No).map(|s| SYSTEMS[s]).collect();
        if !wrong.is_empty() {
            return format!("no ({})", wrong.join(", "));
        }
        let near = (0..3).any(|system| self.agreement(system) == Agreement::Near);
        if near { "within 5 %".into() } else { "to the digit".into() }
    }
}

/// What an operation is charged with in each system (Table 6); `None` if nothing reaches the file manager.
pub(crate) fn charged(
    inputs: Inputs<'_>,
    trace: TraceKind,
    operation: &str,
) -> Result<[Option<String>; 3], PaperError> {
    let name = if operation == "Open" { "NasdOpen" } else { operation };
    let rules = inputs.sheet(trace.table6())?;
    // Table 6 leaves out what is the same in all systems.
    let Some(row) = rules.row(name) else { return Ok([(); 3].map(|()| Some(operation.to_owned()))) };
    Ok(SYSTEMS.map(|system| {
        let rule = row.get(rules.column(system)?)?.text()?;
        let rule = rule.split('(').next().unwrap_or_default();
        (!rule.is_empty()).then(|| rule.to_owned())
    }))
}

/// The work of all operations of a trace in its busy client-minutes.
///
/// # Errors
/// A number is not in the data.
pub fn work(inputs: Inputs<'_>, trace: TraceKind) -> Result<Vec<OperationWork>, PaperError> {
    let operations = inputs.operations(trace.table7())?;
    operations.into_iter().map(|operation| operation_work(inputs, trace, operation)).collect()
}

fn operation_work(
    inputs: Inputs<'_>,
    trace: TraceKind,
    operation: &str,
) -> Result<OperationWork, PaperError> {
    let count_k = inputs.number(trace.table7(), operation, "count_k")?;
    let bytes = mean_bytes(inputs, trace, operation)?;
    let (mut kcycles, mut printed, mut is_sized) = ([0.0; 3], [0.0; 3], [false; 3]);
    for (system, rule) in charged(inputs, trace, operation)?.into_iter().enumerate() {
        printed[system] = inputs.number(trace.table7(), operation, SYSTEMS[system])?;
        if let Some(rule) = rule {
            kcycles[system] = cost(inputs, &rule, bytes)?;
            is_sized[system] = ["read", "write", "FetchData", "StoreData"].contains(&&*rule);
        }
    }
    let gcycles = kcycles.map(|cost| cost * count_k / 1e3);
    Ok(OperationWork { operation: operation.to_owned(), count_k, kcycles, gcycles, printed, is_sized })
}

/// Table 7, computed, with totals and shares of the SAD total.
///
/// # Errors
/// A number is not in the data.
pub fn table7(inputs: Inputs<'_>, trace: TraceKind) -> Result<Sheet, PaperError> {
    let work = work(inputs, trace)?;
    let total = |system: usize| work.iter().map(|one| one.gcycles[system]).sum::<f64>();
    let totals = [total(0), total(1), total(2)];
    let mut sheet = Sheet::new(&[
        ("operation", ""),
        ("count_k", "10^3"),
        ("SAD", "Gcycles"),
        ("SAD_pct", "%"),
        ("NetSCSI", "Gcycles"),
        ("NetSCSI_pct", "%"),
        ("NASD", "Gcycles"),
        ("NASD_pct", "%"),
        ("as_printed", ""),
    ]);
    let row = |name: &str, count_k: f64, gcycles: [f64; 3], agrees: &str| {
        let values = gcycles.into_iter().flat_map(|work| [tenths(work), tenths(100.0 * work / totals[0])]);
        let values = [tenths(count_k)].into_iter().chain(values);
        [Cell::from(name)].into_iter().chain(values).chain([Cell::from(agrees)]).collect()
    };
    for one in &work {
        sheet.rows.push(row(&one.operation, one.count_k, one.gcycles, &one.agreements()));
    }
    sheet.rows.push(row("total", work.iter().map(|one| one.count_k).sum(), totals, ""));
    Ok(sheet)
}

/// Costs that Table 6's rules give each operation, in thousand cycles.
///
/// # Errors
/// A number is not in the data.
pub fn table6(inputs: Inputs<'_>, trace: TraceKind) -> Result<Sheet, PaperError> {
    let mut sheet = Sheet::new(&[
        ("trace_operation", ""),
        ("SAD", "kcycles"),
        ("NetSCSI", "kcycles"),
        ("NASD", "kcycles"),
    ]);
    for one in work(inputs, trace)? {
        let costs = one.kcycles.into_iter().map(tenths);
        sheet.rows.push([Cell::from(&*one.operation)].into_iter().chain(costs).collect());
    }
    Ok(sheet)
}

/// A number to the paper's one digit after the point.
pub(super) fn tenths(number: f64) -> Cell {
    Cell::from((number * 10.0).round() / 10.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    #[test]
    fn every_cell_of_table_7_is_as_printed_but_for_two_slips() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let mut seen = Vec::new();
        for trace in [TraceKind::Nfs, TraceKind::Afs] {
            for one in work(inputs, trace).unwrap() {
                let unlike = (0..3).filter(|system| one.agreement(*system) != Agreement::Digits);
                seen.extend(unlike.map(|s| (one.operation.clone(), SYSTEMS[s], one.agreement(s))));
            }
        }
        let seen: Vec<_> =
            seen.iter().map(|(operation, system, how)| (&**operation, *system, *how)).collect();
        assert_eq!(
            seen,
            [
                ("BlockRead", "SAD", Agreement::Near),
                ("BlockWrite", "SAD", Agreement::Near),
                ("Open", "NASD", Agreement::No),
                ("FetchData", "SAD", Agreement::Near),
                ("StoreData", "SAD", Agreement::No),
            ]
        );
    }

    /// The printed columns and shares follow from the printed cells.
    #[test]
    fn sums_and_shares_of_table_7_follow() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        for trace in [TraceKind::Nfs, TraceKind::Afs] {
            let table = trace.table7();
            let names = inputs.operations(table).unwrap();
            let sad = inputs.number(table, "total", "SAD").unwrap();
            for system in SYSTEMS {
                let cell = |row: &str| inputs.number(table, row, system).unwrap();
                let sum: f64 = names.iter().map(|row| cell(row)).sum();
                assert!((sum - cell("total")).abs() <= 0.05 * names.len() as f64, "{table} {system}: {sum}");
                for row in names.iter().chain(&["total"]) {
                    let share = inputs.number(table, row, &format!("{system}_pct")).unwrap();
                    assert!(
                        (100.0 * cell(row) / sad - share).abs() < 0.05 + 5.0 / sad,
                        "{table} {system} {row}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_totals_are_those_of_the_papers_own_rules() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let total = |trace, system| table7(inputs, trace).unwrap().number("total", system).unwrap();
        // Without the slip in Open: 7.1 Gcycles, 3.2 % of SAD.
        assert_eq!((total(TraceKind::Nfs, "NASD"), total(TraceKind::Nfs, "NASD_pct")), (7.1, 3.2));
        assert_eq!((total(TraceKind::Afs, "NetSCSI"), total(TraceKind::Afs, "NASD")), (189.4, 90.9));
    }
}
