//! Sheet: rows of cells under named columns, with their units. A cell is a number, a text, or nothing at hand.

use crate::spread::Spread;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Columns with their units, and rows of as many cells. The columns `x_min` and `x_max` have the smallest and largest of the values of which
/// the column `x` has the median.
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

    /// Adds a column, whose cells come with the rows.
    pub fn add(&mut self, name: &str, unit: &str) {
        self.columns.push(name.to_owned());
        self.units.push(unit.to_owned());
    }

    /// Adds the columns of a value that was measured several times: those of [`Cell::of_spread`].
    pub fn add_spread(&mut self, name: &str, unit: &str) {
        ["", "_min", "_max"].into_iter().for_each(|end| self.add(&format!("{name}{end}"), unit));
    }

    /// Position of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// The number in the row that begins with the text `first`, in a column.
    #[must_use]
    pub fn number(&self, first: &str, column: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.first() == Some(&first.into()))?;
        row.get(self.column(column)?)?.number()
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A finite number, in the unit of its column.
    Number(f64),
    /// A text, perhaps empty.
    Text(String),
    /// Not printed, not measured, or not legible.
    NotAtHand,
}

impl Cell {
    /// The number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) | Self::NotAtHand => None,
        }
    }

    /// A number, rounded to such parts of one: 1e3 are thousandths.
    #[must_use]
    pub fn rounded(number: f64, parts: f64) -> Self {
        Self::from((number * parts).round() / parts)
    }

    /// Median, smallest and largest, rounded likewise.
    #[must_use]
    pub fn of_spread(spread: Option<Spread>, parts: f64) -> [Self; 3] {
        spread.map_or([const { Self::NotAtHand }; 3], |Spread { median, min, max }| {
            [median, min, max].map(|one| Self::rounded(one, parts))
        })
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::NotAtHand }
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::NotAtHand, Self::from)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::NotAtHand => serializer.serialize_unit(),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Number(f64),
    Text(String),
    Nothing,
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Raw::deserialize(deserializer)? {
            Raw::Number(number) => Self::from(number),
            Raw::Text(text) => Self::Text(text),
            Raw::Nothing => Self::NotAtHand,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_the_same_after_json() {
        let cells = [Cell::Number(1.5), Cell::Number(2.0), Cell::from("x"), Cell::NotAtHand];
        let text = serde_json::to_string(&cells).unwrap();
        assert_eq!(text, "[1.5,2.0,\"x\",null]");
        assert_eq!(serde_json::from_str::<Vec<Cell>>(&text).unwrap(), cells);
        assert_eq!(Cell::from(f64::NAN), Cell::NotAtHand);
    }
}
