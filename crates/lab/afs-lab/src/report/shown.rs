//! Columns and cells as a reader sees them: a value and its spread in one cell.

use crate::papers::{Cell, Sheet};

/// A column with the columns of its spread.
pub(super) struct Column {
    /// Its name, in words.
    pub(super) name: String,
    at: usize,
    deviation: Option<usize>,
    /// Half of the 90 % interval.
    interval: Option<usize>,
    range: Option<(usize, usize)>,
}

/// Whether a column is the spread of another one.
pub(super) fn is_spread(sheet: &Sheet, name: &str) -> bool {
    let of = |end: &str| name.strip_suffix(end).is_some_and(|stem| sheet.column(stem).is_some());
    ["_sd", "_ci90", "_min", "_max"].into_iter().any(of)
}

/// The columns of a sheet; those of spreads are part of what they belong to.
pub(super) fn columns(sheet: &Sheet) -> Vec<Column> {
    let shown = sheet.columns.iter().enumerate().filter(|(_, name)| !is_spread(sheet, name));
    let column = |(at, name): (usize, &String)| {
        let unit = sheet.units.get(at).map_or("", String::as_str);
        let words = name.replace('_', " ");
        let with = |end: &str| sheet.column(&format!("{name}{end}"));
        Column {
            name: if unit.is_empty() || unit == words { words } else { format!("{words}, {unit}") },
            at,
            deviation: with("_sd"),
            interval: with("_ci90"),
            range: with("_min").zip(with("_max")),
        }
    };
    shown.map(column).collect()
}

impl Column {
    /// The cell of a row.
    pub(super) fn cell(&self, row: &[Cell]) -> String {
        let get = |at: usize| row.get(at).unwrap_or(&Cell::NotAtHand);
        let value = get(self.at).to_string();
        let number = |at: usize| get(at).number();
        if let Some(deviation) = self.deviation.and_then(number) {
            return format!("{value} ± {}", Cell::from(deviation));
        }
        if let Some(half) = self.interval.and_then(number) {
            return format!("{value} ± {} (90 %)", Cell::from(half));
        }
        match self.range.and_then(|(min, max)| number(min).zip(number(max))) {
            Some((min, max)) => format!("{value} ({}–{})", Cell::from(min), Cell::from(max)),
            None => value,
        }
    }

    /// Whether its cells are numbers, which stand to the right.
    pub(super) fn is_number(&self, sheet: &Sheet) -> bool {
        sheet.rows.iter().any(|row| row.get(self.at).is_some_and(|cell| cell.number().is_some()))
    }
}

/// A number of which no digits are told: three significant ones, all of a larger whole number.
pub(super) fn rounded(number: f64) -> String {
    let size = number.abs();
    let places =
        if size >= 100.0 || size == 0.0 { 0 } else { (2.0 - size.log10().floor()).min(9.0) as usize };
    let text = format!("{number:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Lowest and highest value at a row, for a plot: value and deviation, or half the interval; or the range.
pub(super) fn spread(sheet: &Sheet, column: &str, row: &[Cell]) -> Option<(f64, f64)> {
    let number = |end: &str| row.get(sheet.column(&format!("{column}{end}"))?)?.number();
    let half = number("_sd").or_else(|| number("_ci90"));
    match (number("")?, half, number("_min"), number("_max")) {
        (value, Some(half), _, _) => Some((value - half, value + half)),
        (_, None, Some(min), Some(max)) => Some((min, max)),
        _ => None,
    }
}
