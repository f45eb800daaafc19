//! Tables III and IV of Howard et al. 1988, and columns of Figure 1, for what clients of the prototype and of Andrew used.

use super::loads::Ran;
use super::prototype::{PrototypeRan, Usage};
use crate::sheet::{Cell, Sheet};
use std::collections::BTreeSet;

/// Percent of what there was at load 1.
fn relative(number: Option<f64>, first: Option<f64>) -> Cell {
    number.zip(first).map_or(Cell::NotAtHand, |(number, first)| Cell::rounded(100.0 * number / first, 10.0))
}

/// Table III: times of a run and of TestAuth by load, and beside them those of a run on Andrew.
#[must_use]
pub fn table3(prototype: &PrototypeRan, andrew: Option<&Ran>) -> Sheet {
    let mut sheet = Sheet::new(&[("load_units", "load units")]);
    for (what, unit) in [("overall", "s"), ("testauth", "ms")] {
        sheet.add_spread(what, unit);
        sheet.add(&format!("{what}_rel"), "%");
    }
    if andrew.is_some() {
        sheet.add("andrew_overall", "s");
        sheet.add("andrew_overall_rel", "%");
    }
    let first = prototype.ran.loads.first();
    let test_auth = first.and_then(|first| first.test_auth()).map(|spread| spread.median);
    for at in &prototype.ran.loads {
        let load = f64::from(at.load);
        let checks = at.test_auth();
        let mut row = vec![load.into()];
        row.extend(Cell::of_spread(Some(at.elapsed), 1e3));
        row.push(relative(Some(at.elapsed.median), first.map(|first| first.elapsed.median)));
        row.extend(Cell::of_spread(checks, 1e4));
        row.push(relative(checks.map(|spread| spread.median), test_auth));
        row.extend(andrew.into_iter().flat_map(|andrew| {
            let elapsed = andrew.at(load).map(|at| at.elapsed.median);
            let seconds = elapsed.map_or(Cell::NotAtHand, |elapsed| Cell::rounded(elapsed, 1e3));
            [seconds, relative(elapsed, andrew.at(1.0).map(|at| at.elapsed.median))]
        }));
        sheet.rows.push(row);
    }
    sheet
}

/// Table IV: use of the server by load.
#[must_use]
pub fn table4(prototype: &PrototypeRan) -> Sheet {
    let mut sheet = Sheet::new(&[
        ("server", ""),
        ("samples", "runs of clients"),
        ("cpu_total", "%"),
        ("cpu_user", "%"),
        ("cpu_system", "%"),
        ("disk1_kb", "KB in a run"),
        ("cpu_s_per_run", "s"),
    ]);
    for (at, usage) in prototype.ran.loads.iter().zip(&prototype.usage) {
        let Usage { clients, user, system, written_bytes } = usage;
        let total = user + system;
        let part = |seconds: &f64| {
            Cell::rounded(100.0 * at.processor * seconds / total.max(f64::MIN_POSITIVE), 10.0)
        };
        let runs = f64::from((*clients).max(1));
        sheet.rows.push(vec![
            Cell::Text(format!("load {}", at.load)),
            f64::from(*clients).into(),
            Cell::rounded(100.0 * at.processor, 10.0),
            part(user),
            part(system),
            Cell::rounded(*written_bytes as f64 / 1e3 / runs, 1.0),
            Cell::rounded(total / runs, 1e4),
        ]);
    }
    sheet
}

/// Columns of Figure 1 for what was run, by their names: times in percent of those at load 1.
#[must_use]
pub fn relative_times(columns: &[(&str, &Ran)]) -> Sheet {
    let mut sheet = Sheet::new(&[("load_units", "load units")]);
    let loads: BTreeSet<u32> = columns.iter().flat_map(|(_, ran)| &ran.loads).map(|at| at.load).collect();
    sheet.rows.extend(loads.iter().map(|load| vec![f64::from(*load).into()]));
    for (name, ran) in columns {
        sheet.add(name, "%");
        let median = |load: f64| ran.at(load).map(|at| at.elapsed.median);
        for (row, load) in sheet.rows.iter_mut().zip(&loads) {
            row.push(relative(median(f64::from(*load)), median(1.0)));
        }
    }
    sheet
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::super::loads::AtLoad;
    use super::*;
    use crate::demands::Demands;
    use crate::spread::Spread;
    use serde_json::json;
    use std::time::Duration;

    fn ran(loads: &[(u32, f64)]) -> Ran {
        let at = |(load, median): &(u32, f64)| AtLoad {
            load: *load,
            elapsed: Spread { median: *median, min: *median - 1.0, max: *median + 1.0 },
            processor: 0.5,
            said: vec![json!({ "checks": 4, "checks_seconds": 0.002 * f64::from(*load) })],
        };
        let demands = Demands { elapsed: 2.0, processor: 0.2 };
        Ran { loads: loads.iter().map(at).collect(), demands, part: 0.5, think: Duration::from_secs(1) }
    }

    #[test]
    fn times_stand_relative_to_load_1_and_beside_andrews() {
        let prototype = PrototypeRan { ran: ran(&[(1, 2.0), (5, 3.0)]), usage: Vec::new() };
        let sheet = table3(&prototype, Some(&ran(&[(1, 4.0), (2, 5.0)])));
        let numbers = |row: usize| sheet.rows[row].iter().filter_map(Cell::number).collect::<Vec<_>>();
        assert_eq!(numbers(0), [1.0, 2.0, 1.0, 3.0, 100.0, 0.5, 0.5, 0.5, 100.0, 4.0, 100.0]);
        assert_eq!(numbers(1), [5.0, 3.0, 2.0, 4.0, 150.0, 2.5, 2.5, 2.5, 500.0]);
        assert_eq!(sheet.columns.len(), sheet.rows[1].len());
        let figure =
            relative_times(&[("ran_prototype", &prototype.ran), ("ran_andrew", &ran(&[(1, 4.0), (8, 6.0)]))]);
        let cell = Cell::from;
        assert_eq!(figure.rows[0], [cell(1.0), cell(100.0), cell(100.0)]);
        assert_eq!(
            figure.rows[1..],
            [[cell(5.0), cell(150.0), Cell::NotAtHand], [cell(8.0), Cell::NotAtHand, cell(150.0)]]
        );
    }

    #[test]
    fn use_of_the_server_is_told_by_load() {
        let usage = Usage { clients: 2, user: 0.3, system: 0.1, written_bytes: 800_000 };
        let sheet = table4(&PrototypeRan { ran: ran(&[(2, 2.0)]), usage: vec![usage] });
        let numbers: Vec<f64> = sheet.rows[0].iter().filter_map(Cell::number).collect();
        assert_eq!(numbers, [2.0, 50.0, 37.5, 12.5, 400.0, 0.2]);
        assert_eq!(sheet.rows[0].len(), sheet.columns.len());
    }
}
