//! Entry of a paper: a table or figure with what is known of it, and the claims and slips beside the entries.

use super::sheet::Sheet;
use serde::{Deserialize, Serialize};

/// A paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// Short name, with which the ids of its entries begin.
    pub id: String,
    /// Where it was published.
    pub citation: String,
    /// Tables and figures, tables first.
    pub entries: Vec<Entry>,
    /// What its text says of its tables.
    pub claims: Vec<Claim>,
    /// Digits that do not follow from its own numbers.
    pub slips: Vec<Slip>,
}

/// Whether an entry is a table or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A table.
    Table,
    /// A figure.
    Figure,
}

/// Origin of an entry's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Printed in a table of the paper.
    Table,
    /// Stated in its prose only.
    Text,
    /// Computed from printed numbers.
    Derived,
}

/// A table or figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name, such as `howard88.table6`.
    pub id: String,
    /// Table or figure.
    pub kind: Kind,
    /// Title, as printed or inferred.
    pub title: String,
    /// Page, if known.
    pub page: String,
    /// Section of the paper.
    pub section: String,
    /// Columns and rows.
    pub sheet: Sheet,
    /// What was measured, on what.
    pub notes: String,
    /// Origin of the numbers.
    pub source: Source,
    /// Cells that are hard to read, and why.
    pub doubtful: Vec<String>,
    /// What the text at hand lacks.
    pub missing: Option<String>,
}

/// A statement of the text about its tables.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// Section of the paper.
    pub section: String,
    /// The statement.
    pub says: String,
    /// The value stated.
    pub stated: f64,
    /// The value that follows from the tables.
    pub computed: f64,
    /// How it follows.
    pub from: String,
    /// Whether the two agree.
    pub follows: Follows,
}

/// Whether a claim follows from the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follows {
    /// It does.
    Yes,
    /// Right in kind, off in the last digit or in a rounding word.
    Near,
    /// It does not.
    No,
}

/// Digits that do not follow from the paper's own numbers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slip {
    /// Its name.
    pub id: String,
    /// Id of the entry that it belongs to.
    pub entry: String,
    /// What does not follow, and what would.
    pub what: String,
}
