//! Examination of a store that is not open: a walk over all pages of its index and all records of its log that goes on behind damage.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;

use crate::current_turn::{self, CurrentTurn, Held};
use crate::damage::{Damage, LostRows, Report};
use crate::error::{KvError, OpenError};
use crate::index_walk::IndexWalk;
use crate::log;
use crate::log_survey::LogSurvey;
use crate::medium::{Blob, Medium};
use crate::pages::{Bounds, LostPage, PageVisitor};
use crate::recovery::LogFormat;

/// Reads everything of a store that is not open, and says what is damaged and what is lost. Writes nothing. An empty medium is a store that is whole.
/// `rows` sees each row that can be read in the index; what is in the log alone is not among them.
///
/// # Errors
/// The medium cannot be listed, or another version of this program wrote the store. Parts that cannot be read are damage.
pub fn check(medium: &dyn Medium, rows: &mut dyn RowVisitor) -> Result<Report, OpenError> {
    Ok(Examined::of(medium, rows)?.report)
}

/// Sees the rows of a store that is checked.
pub trait RowVisitor {
    /// A row of a table.
    fn row(&mut self, table: &str, key: &[u8], value: &[u8]);
}

/// Sees nothing.
impl RowVisitor for () {
    fn row(&mut self, _: &str, _: &[u8], _: &[u8]) {}
}

/// A store that was examined.
pub(crate) struct Examined {
    pub(crate) index: IndexWalk,
    pub(crate) log: LogSurvey,
    pub(crate) report: Report,
}

/// What a walk over the rows finds.
struct Counted<'a> {
    report: &'a mut Report,
    tables: &'a [(String, u8)],
    row: &'a mut dyn RowVisitor,
}

impl Examined {
    pub(crate) fn of(medium: &dyn Medium, row: &mut dyn RowVisitor) -> Result<Self, OpenError> {
        let there = medium.list()?;
        let blob =
            |name: &str| there.iter().any(|found| found == name).then(|| medium.open(name)).transpose();
        let mut report = Report::default();
        let index = index(blob("index")?, &there, &mut report, row);
        let format = format(&index)?;
        let turn = blob(current_turn::NAME)?;
        let has_log = index.meta.contains_key("log") || (turn.is_some() && !index.damage.is_empty());
        let held = held(turn, has_log, &mut report);
        let [first, second] = log::names(format);
        let blobs = [blob(first)?, blob(second)?];
        let survey = |applied| LogSurvey::read(blobs.clone(), format, held, applied);
        let applied = index.meta.get("applied").copied();
        let mut log = survey(applied.unwrap_or(0));
        let applied = applied.unwrap_or_else(|| assumed(&index, &log));
        if applied > 0 && index.meta.is_empty() {
            log = survey(applied);
        }
        if has_log {
            log::missing(&there).for_each(|missing| report.note_damage(missing));
        }
        let examined = Self { index, log, report: Report { applied, ..report } };
        Ok(examined.with_log())
    }

    /// Adds what was found of the log.
    fn with_log(mut self) -> Self {
        let (report, log) = (&mut self.report, &self.log);
        let known = report.damage.clone();
        // Of a file of which it is known already that it is missing, or unreadable, the consequences are no news.
        let is_news = |damage: &&Damage| known.iter().all(|known| known.file != damage.file);
        log.damage.iter().filter(is_news).for_each(|news| report.note_damage(news.clone()));
        (report.through, report.last, report.later) = (log.through, log.last, log.later);
        report.lost.clone_from(&log.lost);
        self
    }
}

/// The index, and what is damaged of it.
fn index(
    blob: Option<Arc<dyn Blob>>,
    there: &[String],
    report: &mut Report,
    row: &mut dyn RowVisitor,
) -> IndexWalk {
    let Some(blob) = blob else {
        let mut index = IndexWalk::default();
        if there.iter().any(|name| name.starts_with("log.")) {
            index.damage.push("is missing: put it back".into());
        }
        index.damage.iter().for_each(|what| report.note_damage(Damage::of("index", what.as_str())));
        return index;
    };
    let index = IndexWalk::open(&blob);
    index.damage.iter().for_each(|what| report.note_damage(Damage::of("index", what.as_str())));
    let Ok(()) = index.rows(&mut Counted { report, tables: &index.tables, row });
    if !index.damage.is_empty() && !index.has_rows() {
        report.note_lost_rows(lost_rows(Bounds::default(), &index.tables));
    }
    index
}

/// The last batch of an index that has lost its number. It has all before the first of the log: what is applied again, in order, is right.
fn assumed(index: &IndexWalk, log: &LogSurvey) -> u64 {
    let before_log = log.lost.first().filter(|lost| lost.first == 1).and_then(|lost| lost.last);
    if index.has_rows() { before_log.unwrap_or(0) } else { 0 }
}

fn format(index: &IndexWalk) -> Result<LogFormat, OpenError> {
    match index.meta.get("format") {
        Some(1) => Ok(LogFormat::One),
        Some(2) | None => Ok(LogFormat::Two),
        Some(&found) => Err(OpenError::Format { found, expected: 2 }),
    }
}

/// What the log holds at least, by its own word.
fn held(blob: Option<Arc<dyn Blob>>, has_log: bool, report: &mut Report) -> Option<Held> {
    let read = |blob| Ok::<_, KvError>(CurrentTurn::of(blob)?.held());
    let held = blob.map(read)?.unwrap_or_default();
    if held.is_none() && has_log {
        report.note_damage(current_turn::unreadable());
    }
    held
}

impl PageVisitor for Counted<'_> {
    type Error = Infallible;

    fn rows(&mut self, rows: Vec<(Bytes, Bytes)>) -> Result<(), Infallible> {
        self.report.rows += rows.len() as u64;
        for (key, value) in &rows {
            let Some((number, key)) = key.split_first() else { continue };
            let known = self.tables.iter().find(|(_, known)| known == number);
            known.iter().for_each(|(table, _)| self.row.row(table, key, value));
        }
        Ok(())
    }

    fn lost(&mut self, page: LostPage) {
        self.report.note_damage(Damage::of("index", page.of_rows()));
        // Of a branch whose pages are all unharmed nothing is lost.
        if page.named == 0 || page.unharmed < page.named {
            self.report.note_lost_rows(lost_rows(page.bounds, self.tables));
        }
    }
}

fn lost_rows(bounds: Bounds, tables: &[(String, u8)]) -> LostRows {
    let number = |key: &Option<Bytes>| key.as_ref().and_then(|key| key.first().copied());
    let (first, last) = (number(&bounds.after).unwrap_or(0), number(&bounds.through).unwrap_or(u8::MAX));
    let between = tables.iter().filter(|(_, number)| (first..=last).contains(number));
    let between = between.map(|(name, _)| name.clone()).collect();
    let place = |key: Bytes| {
        let number = *key.first()?;
        let known = tables.iter().find(|(_, known)| *known == number);
        let table = known.map_or_else(|| format!("table {number}"), |(name, _)| name.clone());
        Some((table, key.slice(1..)))
    };
    LostRows { after: bounds.after.and_then(place), through: bounds.through.and_then(place), tables: between }
}
