//! Shares that the paper's counts, costs and bytes give: of cycles (Tables 3(a), 4(a)) and of the whole trace (Table 5).

use super::costs::cost;
use super::inputs::Inputs;
use super::work::tenths;
use crate::papers::{Cell, PaperError, Sheet};

/// Names of Table 3(a) with what each is charged with.
const RECORDS: [(&str, &str); 7] = [
    ("AttrRead", "getattr"),
    ("AttrWrite", "setattr"),
    ("BlockRead", "read"),
    ("BlockWrite", "write"),
    ("DirRead", "lookup"),
    ("DirReadWrite", "create"),
    ("DeleteWrite", "remove"),
];

/// Share of cycles of each record type of the NFS trace, from the table's own quantities.
///
/// # Errors
/// A number is not in the data.
pub fn table3a(inputs: Inputs<'_>) -> Result<Sheet, PaperError> {
    let mut work = Vec::new();
    for (record, charged) in RECORDS {
        let millions = inputs.number("table3a", record, "quantity_m")?;
        let bytes = match charged {
            "read" => inputs.number("table2", "read data, GB", "nfs")? * 1e3 / millions,
            "write" => inputs.number("table2", "write data, GB", "nfs")? * 1e3 / millions,
            _ => 0.0,
        };
        work.push((record, millions, millions * cost(inputs, charged, bytes)?));
    }
    let mut sheet =
        Sheet::new(&[("record", ""), ("percent", "%"), ("quantity_m", "10^6"), ("pct_cycles", "%")]);
    let [quantity, cycles] = [1, 2].map(|what| sum(&work, what));
    for (record, millions, work) in work {
        let (percent, share) = (tenths(100.0 * millions / quantity), tenths(100.0 * work / cycles));
        sheet.rows.push(vec![record.into(), percent, millions.into(), share]);
    }
    Ok(sheet)
}

fn sum(work: &[(&str, f64, f64)], what: usize) -> f64 {
    work.iter().map(|one| if what == 1 { one.1 } else { one.2 }).sum()
}

/// Share of cycles of each operation of the AFS trace. The two whose sizes in the whole trace are not printed, and
/// BulkStatus, have the printed share; the total follows from the others.
///
/// # Errors
/// A number is not in the data.
pub fn table4a(inputs: Inputs<'_>) -> Result<Sheet, PaperError> {
    let operations = inputs.operations("table4a")?;
    let is_sized = |operation: &str| ["BulkStatus", "FetchData", "StoreData"].contains(&operation);
    let requests: f64 = 1e-3 * inputs.number("table2", "requests", "afs")?;
    let (mut known, mut shares) = (0.0, 0.0);
    let mut rows = Vec::new();
    for operation in operations {
        let count_k = inputs.number("table4a", operation, "quantity_k")?;
        let printed = inputs.number("table4a", operation, "pct_cycles")?;
        let work = if is_sized(operation) { None } else { Some(count_k * cost(inputs, operation, 0.0)?) };
        known += work.unwrap_or_default();
        shares += if work.is_some() { printed } else { 0.0 };
        rows.push((operation, count_k, work));
    }
    let total = 100.0 * known / shares;
    let mut sheet =
        Sheet::new(&[("operation", ""), ("percent", "%"), ("quantity_k", "10^3"), ("pct_cycles", "%")]);
    for (operation, count_k, work) in rows {
        let share = work.map_or(Cell::NotAtHand, |work| tenths(100.0 * work / total));
        sheet.rows.push(vec![operation.into(), tenths(100.0 * count_k / requests), count_k.into(), share]);
    }
    Ok(sheet)
}

/// Shares of the busy client-minutes in the whole traces: Table 5 over Table 2.
///
/// # Errors
/// A number is not in the data.
pub fn table5(inputs: Inputs<'_>) -> Result<Sheet, PaperError> {
    let mut sheet = Sheet::new(&[
        ("what", ""),
        ("nfs", ""),
        ("nfs_pct_of_trace", "%"),
        ("afs", ""),
        ("afs_pct_of_trace", "%"),
    ]);
    for what in ["client machines", "requests", "read data, GB", "write data, GB"] {
        let mut row = vec![Cell::from(what)];
        for trace in ["nfs", "afs"] {
            let part = inputs.number("table5", what, trace)?;
            row.extend([part.into(), tenths(100.0 * part / inputs.number("table2", what, trace)?)]);
        }
        sheet.rows.push(row);
    }
    Ok(sheet)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::papers::papers;

    #[test]
    fn shares_of_the_whole_nfs_trace_are_not_the_printed_ones() {
        let papers = papers().unwrap();
        let sheet = table3a(Inputs::of(&papers).unwrap()).unwrap();
        let shares: Vec<f64> = sheet.rows.iter().filter_map(|row| row[3].number()).collect();
        for (got, want) in shares.iter().zip([24.7, 0.3, 31.7, 13.8, 27.6, 1.5, 0.4]) {
            assert!((got - want).abs() < 0.35, "{shares:?}");
        }
        let percents: Vec<f64> = sheet.rows.iter().filter_map(|row| row[1].number()).collect();
        for (got, want) in percents.iter().zip([42.5, 0.3, 20.4, 4.2, 31.4, 1.0, 0.2]) {
            assert!((got - want).abs() < 0.11, "{percents:?}");
        }
    }

    #[test]
    fn shares_of_the_whole_afs_trace_are_the_printed_ones() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let sheet = table4a(inputs).unwrap();
        for (operation, count) in [("FetchStatus", "39.3"), ("StoreStatus", "2.2"), ("Others", "5.4")] {
            let share = Cell::from(sheet.number(operation, "pct_cycles")).to_string();
            assert_eq!(share, count, "{operation}");
        }
        for row in &sheet.rows {
            let operation = row[0].text().unwrap();
            let printed = inputs.number("table4a", operation, "percent").unwrap();
            assert!((row[1].number().unwrap() - printed).abs() < 0.11, "{operation}");
            let share = inputs.number("table4a", operation, "pct_cycles").unwrap();
            assert!(row[3].number().is_none_or(|got| (got - share).abs() < 0.06), "{operation}");
        }
    }

    #[test]
    fn shares_of_busy_minutes_are_the_printed_ones() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        for row in table5(inputs).unwrap().rows {
            let what = row[0].text().unwrap();
            for (at, column) in [(2, "nfs_pct_of_trace"), (4, "afs_pct_of_trace")] {
                let printed = inputs.number("table5", what, column).unwrap();
                // Gigabytes have two digits; the others are exact.
                let slack = if what.ends_with("GB") { 3.0 } else { 0.6 };
                assert!((row[at].number().unwrap() - printed).abs() < slack, "{what} {column}: {row:?}");
            }
        }
    }
}
