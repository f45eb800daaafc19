//! Columns of Table VII and Figure 2 for what many processes used.

use super::loads::{AtLoad, Ran};
use crate::papers::{Cell, Sheet};

/// Adds columns for the loads that were run, and what the model says of them, to a sheet with the column `load_units`.
pub fn add_ran(sheet: &mut Sheet, ran: &Ran) {
    let Some(load_units) = sheet.column("load_units") else { return };
    let names = [
        "ran_cpu",
        "ran_overall",
        "ran_overall_min",
        "ran_overall_max",
        "ran_model_cpu",
        "ran_model_overall",
    ];
    sheet.columns.extend(names.map(str::to_owned));
    sheet.units.extend(["%", "s", "s", "s", "%", "s"].map(str::to_owned));
    for row in &mut sheet.rows {
        let load = row.get(load_units).and_then(Cell::number);
        let found = load.and_then(|load| ran.at(load));
        row.extend(found.map_or(
            [const { Cell::NotAtHand }; 6],
            |AtLoad { load, elapsed, processor, .. }| {
                let model = ran.demands.at_load(*load);
                let rounded = |number: f64, digits: f64| Cell::from((number * digits).round() / digits);
                [
                    rounded(100.0 * processor, 10.0),
                    rounded(elapsed.median, 1e3),
                    rounded(elapsed.min, 1e3),
                    rounded(elapsed.max, 1e3),
                    rounded(100.0 * model.processor, 10.0),
                    rounded(model.elapsed, 1e3),
                ]
            },
        ));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::closed::Demands;
    use crate::spread::Spread;
    use std::time::Duration;

    #[test]
    fn loads_that_were_run_stand_beside_the_model_and_others_are_not_at_hand() {
        let mut sheet = Sheet::new(&[("load_units", "")]);
        sheet.rows = vec![vec![1.0.into()], vec![500.0.into()]];
        let elapsed = Spread { median: 2.0, min: 1.5, max: 3.0 };
        let demands = Demands { elapsed: 2.0, processor: 0.2, disk: 0.0 };
        let loads = vec![AtLoad { load: 1, elapsed, processor: 0.125, said: Vec::new() }];
        add_ran(&mut sheet, &Ran { loads, demands, part: 0.5, think: Duration::from_secs(1) });
        let numbers: Vec<f64> = sheet.rows[0].iter().filter_map(Cell::number).collect();
        assert_eq!(numbers, [1.0, 12.5, 2.0, 1.5, 3.0, 10.0, 2.0]);
        assert_eq!(sheet.rows[1].iter().filter_map(Cell::number).count(), 1);
        assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
    }
}
