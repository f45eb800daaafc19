//! Cell of a table: a number, a text, or nothing at hand.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

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

    /// The text, if it is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) | Self::NotAtHand => None,
        }
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

/// A number as a person reads it: whole numbers without a point, others with four significant digits at least.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => f.write_str(&digits(*number)),
            Self::Text(text) => f.write_str(text),
            Self::NotAtHand => f.write_str("not at hand"),
        }
    }
}

fn digits(number: f64) -> String {
    let size = number.abs();
    let places = match size {
        _ if number == number.trunc() && size < 1e15 => 0,
        _ if size >= 1000.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 0.1 => 3,
        _ => 6,
    };
    let text = format!("{number:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
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
    fn numbers_have_the_digits_that_people_read() {
        let shown: Vec<String> =
            [6_676_479.0, 0.474, 33.3, 1234.56, 0.000_125, -0.5, 0.0].map(digits).into_iter().collect();
        assert_eq!(shown, ["6676479", "0.474", "33.3", "1234.6", "0.000125", "-0.5", "0"]);
    }

    #[test]
    fn a_cell_is_the_same_after_json() {
        let cells = [Cell::Number(1.5), Cell::Number(2.0), Cell::from("x"), Cell::NotAtHand];
        let text = serde_json::to_string(&cells).unwrap();
        assert_eq!(text, "[1.5,2.0,\"x\",null]");
        assert_eq!(serde_json::from_str::<Vec<Cell>>(&text).unwrap(), cells);
        assert_eq!(Cell::from(f64::NAN), Cell::NotAtHand);
    }
}
