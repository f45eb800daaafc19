//! Costs measured on a server in the form of the paper's tables: 3(b) to 3(d), 4(b) to 4(d), and the work of Table 7.

use super::charges::ReplayError;
use super::measured::{MeasuredCosts, at};
use super::systems::System;
use crate::catalogue::CostTable;
use crate::load::BULK_BY_ENTRIES;
use crate::model::{Inputs, TraceKind, work};
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
    let systems = System::all(Some(costs));
    let mut rows = Vec::new();
    for one in work(inputs, kind)? {
        let bytes = one.mean_bytes(inputs, kind)?;
        let seconds = |system: &System| -> Result<f64, ReplayError> {
            let points = system.points(inputs, kind, &one.operation, Some(costs))?;
            let each = points.and_then(|points| at(&points, bytes)).unwrap_or_default();
            Ok(one.count_k * 1e3 * each)
        };
        rows.push(systems.iter().map(seconds).collect::<Result<Vec<f64>, _>>()?);
    }
    let total: Vec<f64> =
        (0..systems.len()).map(|system| rows.iter().map(|seconds| seconds[system]).sum()).collect();
    rows.push(total.clone());
    for system in systems.iter().map(|system| system.name()) {
        sheet.columns.extend([format!("{system}_here"), format!("{system}_here_pct")]);
        sheet.units.extend(["s".to_owned(), "%".to_owned()]);
    }
    let sad = total.first().copied().unwrap_or(f64::NAN);
    for (row, seconds) in sheet.rows.iter_mut().zip(rows) {
        row.extend(seconds.into_iter().flat_map(|one| [tenths(one), tenths(100.0 * one / sad)]));
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
    use crate::load::{BULK_BY_REQUESTS, PATH_READ, PATH_STORE};
    use crate::model::table7;
    use crate::papers::papers;
    use crate::replay::WarmClient;

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

    /// Calls for capabilities that the client makes take the place of its opens; bytes of SID are charged as the path's.
    #[test]
    fn groups_and_integrated_disks_have_columns_where_they_were_measured() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let with = |costs: &MeasuredCosts| {
            let mut sheet = table7(inputs, TraceKind::Afs).unwrap();
            add_work(&mut sheet, inputs, TraceKind::Afs, costs).unwrap();
            sheet
        };
        let mut costs = measured();
        assert!(["SID_here", "NASD_groups_here"].iter().all(|column| with(&costs).column(column).is_none()));
        costs.add("GetCapability", 0.0, 20.0);
        costs.add(PATH_READ, 0.0, 5.0);
        costs.add(PATH_STORE, 0.0, 5.0);
        costs.add(BULK_BY_REQUESTS, 8.0, 30.0);
        let calls_per_minute = [("BulkCapability".to_owned(), 2.0)].into();
        let warm = WarmClient { minutes: 10, opens_per_minute: 171, directories: 8, calls_per_minute };
        costs.warm_client = Some(warm.clone());
        let sheet = with(&costs);
        let here = |row: &str, column: &str| sheet.number(row, column).unwrap();
        // 480.8 thousand opens at 20 µs; two calls of 30 µs in each of 2,809 minutes.
        assert_eq!((here("Open", "NASD_here"), here("Open", "NASD_groups_here")), (9.6, 0.2));
        assert_eq!(here("Open", "SID_here"), 0.2);
        assert!(here("FetchData", "SID_here") < here("FetchData", "SAD_here"));
        assert_eq!(here("FetchStatus", "SID_here"), here("FetchStatus", "SAD_here"));
        assert!(here("total", "NASD_groups_here") < here("total", "NASD_here"));
        // Layouts are charged at the cost of one call for as many files as it can have, renewals by directories.
        costs.add("GetLayouts", 1.0, 10.0);
        costs.add("GetLayouts", 32.0, 40.0);
        costs.add("RenewLayouts", 8.0, 20.0);
        let calls_per_minute = [("GetLayouts".to_owned(), 1.0), ("RenewLayouts".to_owned(), 1.0)].into();
        costs.warm_client = Some(WarmClient { calls_per_minute, ..warm.clone() });
        assert_eq!(with(&costs).number("Open", "NASD_groups_here"), Some(0.2));
        // A call that was counted and has no cost.
        costs.warm_client =
            Some(WarmClient { calls_per_minute: [("GetLayout".to_owned(), 1.0)].into(), ..warm });
        assert!(with(&costs).column("NASD_groups_here").is_none());
    }

    /// A room and a commit of the mean size for each store, in the place of the FetchStatus that the paper charges.
    #[test]
    fn writes_at_drives_are_charged_a_room_and_a_commit_where_they_were_measured() {
        let papers = papers().unwrap();
        let inputs = Inputs::of(&papers).unwrap();
        let of = |costs: &MeasuredCosts, row: &str, system: &str| {
            let mut sheet = table7(inputs, TraceKind::Afs).unwrap();
            add_work(&mut sheet, inputs, TraceKind::Afs, costs).unwrap();
            let here = sheet.number(row, &format!("{system}_here")).unwrap();
            (sheet.number(row, "count_k").unwrap() * 1e3, here)
        };
        let mut costs = measured();
        let (stores, before) = of(&costs, "StoreData", "NASD");
        assert!((before - stores * 10e-6).abs() < 0.06, "a FetchStatus: {before}");
        costs.add("CommitRoom", 1.0, 100.0);
        assert_eq!(of(&costs, "StoreData", "NASD").1, before, "a commit alone is not all");
        costs.add("GetRoom", 1.0, 30.0);
        costs.add("GetRoom", 1e6, 30.0);
        costs.add("CommitRoom", 1e6, 100.0);
        let (_, here) = of(&costs, "StoreData", "NASD");
        assert!((here - stores * 130e-6).abs() < 0.06, "{here}");
        for system in ["SAD", "NetSCSI"] {
            assert_eq!(of(&costs, "StoreData", system), of(&measured(), "StoreData", system), "{system}");
        }
        assert_eq!(of(&costs, "FetchData", "NASD").1, 0.0);
        // With groups there are both.
        costs.add(BULK_BY_REQUESTS, 8.0, 30.0);
        let calls_per_minute = [("BulkCapability".to_owned(), 2.0)].into();
        costs.warm_client =
            Some(WarmClient { minutes: 10, opens_per_minute: 171, directories: 8, calls_per_minute });
        assert_eq!(of(&costs, "StoreData", "NASD_groups").1, here);
        assert_eq!(of(&costs, "StoreData", "NASD_groups_by_rule").1, before);
        assert_eq!(of(&costs, "Open", "NASD_groups_by_rule"), of(&costs, "Open", "NASD_groups"));
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
