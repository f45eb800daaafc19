//! Columns of Table VII and Figure 2 for what many processes used.

use super::loads::Ran;
use crate::sheet::{Cell, Sheet};

/// Use of the server, and seconds of a run, by the loads that were run.
#[must_use]
pub fn by_load(ran: &Ran) -> Sheet {
    let mut sheet = Sheet::new(&[("load_units", "load units"), ("ran_cpu", "%")]);
    sheet.add_spread("ran_overall", "s");
    sheet.rows.extend(ran.loads.iter().map(|at| {
        let used = [f64::from(at.load).into(), Cell::rounded(100.0 * at.processor, 10.0)];
        used.into_iter().chain(Cell::of_spread(Some(at.elapsed), 1e3)).collect()
    }));
    sheet
}
