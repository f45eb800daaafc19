//! Recovery: replays the log when a store is opened.

use crate::current_turn::Held;
use crate::error::KvError;
use crate::log;
use crate::log_survey::LogSurvey;
use crate::log_turn::Turn;
use crate::medium::Medium;
use crate::memtable::Memtable;

/// The formats of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Records without a salt, from the beginning of the file. Read once, and never written.
    One,
    /// Turns with a salt each.
    Two,
}

/// Inserts every batch after `applied` into `memtable`; returns the last sequence number of the store. `held` is what the log holds at least.
///
/// An incomplete record ends the log: it was being written at the crash, and its success was not reported. A gap, or
/// a complete record after a broken one, is damage to acknowledged data, and an error.
pub(crate) fn replay(
    medium: &dyn Medium,
    format: LogFormat,
    held: Option<Held>,
    applied: u64,
    memtable: &Memtable,
) -> Result<u64, KvError> {
    let blobs = log::open_blobs(medium, format)?.map(Some);
    let survey = LogSurvey::read(blobs, format, held, applied).into_whole()?;
    survey.load(applied, survey.through, |sequence, rows| {
        memtable.insert(rows, sequence, sequence);
        Ok(())
    })?;
    Ok(survey.through)
}

/// What a log of before its current turn was named holds at least.
pub(crate) fn found_in_log(medium: &dyn Medium, format: LogFormat, applied: u64) -> Result<Held, KvError> {
    let mut turns = Vec::new();
    if format == LogFormat::Two {
        for (file, blob) in log::open_blobs(medium, format)?.into_iter().enumerate() {
            turns.extend(Turn::read(blob.as_ref())?.map(|turn| (file, turn)));
        }
    }
    let last = turns.into_iter().max_by_key(|(_, turn)| turn.first);
    Ok(last.map_or(Held::Nothing { through: applied }, |(file, turn)| Held::Turn { file, turn }))
}
