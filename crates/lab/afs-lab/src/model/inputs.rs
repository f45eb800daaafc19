//! Access to numbers of a paper by entry, row and column.

use crate::papers::{Entry, Paper, PaperError, Sheet};

/// The tables of Gibson et al. 1997, by their short names.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a>(pub(super) &'a Paper);

impl<'a> Inputs<'a> {
    /// Those of the embedded paper.
    ///
    /// # Errors
    /// The paper is not among them.
    pub fn of(papers: &'a [Paper]) -> Result<Self, PaperError> {
        let paper = papers.iter().find(|paper| paper.id == "gibson97");
        paper.map(Self).ok_or_else(|| PaperError::Absent("gibson97".into()))
    }

    /// The sheet of an entry.
    pub(crate) fn sheet(self, table: &str) -> Result<&'a Sheet, PaperError> {
        let is_it = |entry: &&Entry| entry.id.strip_prefix("gibson97.") == Some(table);
        let entry = self.0.entries.iter().find(is_it);
        entry.map(|entry| &entry.sheet).ok_or_else(|| PaperError::Absent(table.to_owned()))
    }

    /// A number.
    pub(crate) fn number(self, table: &str, row: &str, column: &str) -> Result<f64, PaperError> {
        let number = self.sheet(table)?.number(row, column);
        number.ok_or_else(|| PaperError::Absent(format!("{table}, {row}, {column}")))
    }

    /// Cost of `what` on the line through the points of a table, at `x`; points below `from` are left out.
    pub(crate) fn on_line(
        self,
        table: &str,
        axis: &str,
        what: &str,
        from: f64,
        x: f64,
    ) -> Result<f64, PaperError> {
        let mut points = self.sheet(table)?.points(axis, what);
        points.retain(|point| point.0 >= from);
        super::line(&points, x).ok_or_else(|| PaperError::Absent(format!("{table}, {what}")))
    }

    /// The rows' names, in order, without the total.
    pub(crate) fn operations(self, table: &str) -> Result<Vec<&'a str>, PaperError> {
        let rows = &self.sheet(table)?.rows;
        let names = rows.iter().filter_map(|row| row.first()?.text());
        Ok(names.filter(|name| *name != "total").collect())
    }
}
