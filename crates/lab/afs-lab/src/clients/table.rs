//! Columns of Table VII and Figure 2 for what many processes used.

use super::loads::Ran;
use crate::sheet::{Cell, Sheet};

/// Use of the server, and seconds of a run, by the loads that were run.
#[must_use]
pub fn by_load(ran: &Ran) -> Sheet {
    let mut sheet = Sheet::new(&[
        ("load_units", "load units"),
        ("ran_cpu", "%"),
        ("ran_overall", "s"),
        ("ran_overall_min", "s"),
        ("ran_overall_max", "s"),
    ]);
    let rounded = |number: f64, digits: f64| Cell::from((number * digits).round() / digits);
    sheet.rows.extend(ran.loads.iter().map(|at| {
        let seconds = [at.elapsed.median, at.elapsed.min, at.elapsed.max].map(|one| rounded(one, 1e3));
        [f64::from(at.load).into(), rounded(100.0 * at.processor, 10.0)].into_iter().chain(seconds).collect()
    }));
    sheet
}
