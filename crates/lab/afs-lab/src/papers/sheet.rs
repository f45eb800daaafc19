//! Rows of cells under named columns: a table of a paper, or a result.

use super::cell::Cell;
use serde::{Deserialize, Serialize};

/// Columns with their units, and rows of as many cells. A column `x_sd` has standard deviations of the column `x`, `x_ci90`
/// half of the 90 % interval of its mean, the
/// columns `x_min` and `x_max` the smallest and largest of the values of which `x` has the median.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Their units, as many; empty for a number without one, or a text.
    pub units: Vec<String>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

impl Sheet {
    /// An empty sheet with these columns: name and unit.
    #[must_use]
    pub fn new(columns: &[(&str, &str)]) -> Self {
        let columns = columns.iter().map(|(name, unit)| ((*name).to_owned(), (*unit).to_owned()));
        let (columns, units) = columns.unzip();
        Self { columns, units, rows: Vec::new() }
    }

    /// Position of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The row whose first cell is this text.
    #[must_use]
    pub fn row(&self, first: &str) -> Option<&[Cell]> {
        self.rows.iter().find(|row| row.first().and_then(Cell::text) == Some(first)).map(Vec::as_slice)
    }

    /// The number in the row that begins with `first`, in a column.
    #[must_use]
    pub fn number(&self, first: &str, column: &str) -> Option<f64> {
        self.row(first)?.get(self.column(column)?)?.number()
    }

    /// Points of two columns, where both cells are numbers.
    #[must_use]
    pub fn points(&self, x: &str, y: &str) -> Vec<(f64, f64)> {
        let (Some(x), Some(y)) = (self.column(x), self.column(y)) else { return Vec::new() };
        let point = |row: &Vec<Cell>| Some((row.get(x)?.number()?, row.get(y)?.number()?));
        self.rows.iter().filter_map(point).collect()
    }
}
