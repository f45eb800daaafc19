//! Costs measured on a server in the form of the paper's tables: 3(b) to 3(d), 4(b) to 4(d), and the work of Table 7.

use super::charges::ReplayError;
use super::measured::MeasuredCosts;
use crate::catalogue::CostTable;
use crate::load::BULK_BY_ENTRIES;
use crate::model::{Inputs, SYSTEMS, TraceKind, charged, work};
use crate::papers::{Cell, Sheet};

/// A table of costs, in microseconds; `None` if none of its calls was measured.
#[must_use]
pub fn costs_table(table: CostTable, costs: &MeasuredCosts) -> Option<Sheet> {
    let sheet = match table {
        CostTable::NfsSized => by_size(costs, "bytes", &[("read", "read"), ("write", "write")]),
        CostTable::NfsFixed => {
            fixed(costs, &[("getattr", "getattr"), ("setattr", "setattr"), ("lookup", "lookup")])
        }
        CostTable::NfsNames => fixed(costs, &[("create", "create"), ("unlink (last link)", "remove")]),
        CostTable::AfsSized => {
            by_size(costs, "bytes", &["FetchData", "StoreData", "RemoveFile"].map(|one| (one, one)))
        }
        CostTable::AfsEntries => by_size(costs, "entries", &[("microseconds", BULK_BY_ENTRIES)]),
        CostTable::AfsFixed => fixed(
            costs,
            &["FetchStatus", "StoreStatus", "CreateFile", "Rename", "Others"].map(|one| (one, one)),
        ),
    };
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// Calls that have no size: as the paper, names that the calls are measured under stand beside their own.
fn fixed(costs: &MeasuredCosts, calls: &[(&str, &str)]) -> Sheet {
    let mut sheet = Sheet::new(&[("operation", ""), ("microseconds", "µs")]);
    sheet.rows.extend(calls.iter().filter_map(|(name, call)| {
        let (_, cost) = costs.microseconds(call).first()?;
        Some(vec![(*name).into(), tenths(*cost)])
    }));
    sheet
}

fn by_size(costs: &MeasuredCosts, axis: &str, calls: &[(&str, &str)]) -> Sheet {
    let mut sheet = Sheet::new(&[(axis, axis)]);
    sheet.columns.extend(calls.iter().map(|(name, _)| (*name).to_owned()));
    sheet.units.extend(calls.iter().map(|_| "µs".to_owned()));
    let mut sizes: Vec<f64> =
        calls.iter().flat_map(|(_, call)| costs.microseconds(call)).map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    for size in sizes {
        let cost = |(_, call): &(&str, &str)| {
            let point = costs.microseconds(call).iter().find(|point| point.0.total_cmp(&size).is_eq());
            point.map_or(Cell::NotAtHand, |point| tenths(point.1))
        };
        sheet.rows.push([Cell::from(size)].into_iter().chain(calls.iter().map(cost)).collect());
    }
    sheet
}

/// Adds to Table 7 the seconds of the server for the same requests at its own costs, and their shares of those with disks
/// behind it.
///
/// # Errors
/// A number is not in the data, or a call was not measured.
pub fn add_work(
    sheet: &mut Sheet,
    inputs: Inputs<'_>,
    kind: TraceKind,
    costs: &MeasuredCosts,
) -> Result<(), ReplayError> {
    let mut rows = Vec::new();
    for one in work(inputs, kind)? {
        let bytes = one.mean_bytes(inputs, kind)?;
        let mut seconds = [0.0; 3];
        for (system, rule) in charged(inputs, kind, &one.operation)?.into_iter().enumerate() {
            // Table 7 counts opens for capabilities only.
            let is_charged = one.operation != "Open" || system == SYSTEMS.len() - 1;
            if let Some(rule) = rule.filter(|_| is_charged) {
                let cost = costs.seconds(&rule, bytes).ok_or(ReplayError::NotMeasured(rule))?;
                seconds[system] = one.count_k * 1e3 * cost;
            }
        }
        rows.push(seconds);
    }
    let total = [0, 1, 2].map(|system| rows.iter().map(|seconds| seconds[system]).sum::<f64>());
    rows.push(total);
    for system in SYSTEMS {
        sheet.columns.extend([format!("{system}_here"), format!("{system}_here_pct")]);
        sheet.units.extend(["s".to_owned(), "%".to_owned()]);
    }
    for (row, seconds) in sheet.rows.iter_mut().zip(rows) {
        row.extend(seconds.into_iter().flat_map(|one| [tenths(one), tenths(100.0 * one / total[0])]));
    }
    Ok(())
}

fn tenths(number: f64) -> Cell {
    ((number * 10.0).round() / 10.0).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::model::table7;
    use crate::papers::papers;

    /// Costs of a server on which a call without a size takes 10 µs, and one with a size as many more as it has KB.
    fn measured() -> MeasuredCosts {
        let mut costs = MeasuredCosts::new("a test".into());
        for call in
            ["FetchStatus", "StoreStatus", "CreateFile", "Rename", "Others", "BulkStatus", "RemoveFile"]
        {
            costs.add(call, 0.0, 10.0);
        }
        for call in ["FetchData", "StoreData"] {
            costs.add(call, 0.0, 10.0);
            costs.add(call, 1000.0, 11.0);
        }
        costs
    }

    #[test]
    fn the_work_of_table_7_is_that_of_its_requests_at_the_measured_costs() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let mut sheet = table7(inputs, TraceKind::Afs).unwrap();
        add_work(&mut sheet, inputs, TraceKind::Afs, &measured()).unwrap();
        let here = |row: &str, column: &str| sheet.number(row, column).unwrap();
        // Every request of the trace reaches a server with the disks behind it, and costs ten microseconds at least.
        let requests: f64 = sheet
            .rows
            .iter()
            .filter(|row| ![Some("Open"), Some("total")].contains(&row[0].text()))
            .map(|row| row[1].number().unwrap())
            .sum();
        assert!(here("total", "SAD_here") > requests * 1e3 * 1e-5);
        assert!((here("FetchStatus", "SAD_here") - here("FetchStatus", "count_k") / 100.0).abs() < 0.06);
        assert_eq!((here("FetchStatus", "NASD_here"), here("Open", "SAD_here")), (0.0, 0.0));
        assert!(
            here("Open", "NASD_here") > 0.0
                && here("FetchData", "SAD_here") > here("FetchData", "NetSCSI_here")
        );
        assert_eq!(here("total", "SAD_here_pct"), 100.0);
        assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
        let lacking = add_work(&mut sheet, inputs, TraceKind::Nfs, &measured());
        assert!(matches!(lacking, Err(ReplayError::NotMeasured(_))), "{lacking:?}");
    }

    #[test]
    fn a_table_has_the_calls_that_were_measured() {
        let costs = measured();
        let sheet = costs_table(CostTable::AfsSized, &costs).unwrap();
        assert_eq!(sheet.columns, ["bytes", "FetchData", "StoreData", "RemoveFile"]);
        assert_eq!(sheet.rows[1], [1000.0.into(), 11.0.into(), 11.0.into(), Cell::NotAtHand]);
        let fixed = costs_table(CostTable::AfsFixed, &costs).unwrap();
        assert_eq!(fixed.number("Others", "microseconds"), Some(10.0));
        assert_eq!(costs_table(CostTable::AfsEntries, &costs), None);
        assert_eq!(costs_table(CostTable::NfsNames, &costs), None);
    }
}
