//! Survey of the log: which batches are there, which are lost, and what is damaged. Opening a store, checking it and repairing it go by it alike.

use std::sync::Arc;

use crate::current_turn::Held;
use crate::damage::{Damage, LostBatches};
use crate::error::KvError;
use crate::log::names;
use crate::log_file::{LogFile, Rows, Stretch};
use crate::log_turn::Turn;
use crate::medium::Blob;
use crate::recovery::LogFormat;

/// What the files of a log hold that the index does not.
#[derive(Default)]
pub(crate) struct LogSurvey {
    files: Vec<LogFile>,
    /// By their numbers, with the file of each.
    stretches: Vec<(Stretch, usize)>,
    pub(crate) damage: Vec<Damage>,
    pub(crate) lost: Vec<LostBatches>,
    /// Last batch before which none is missing.
    pub(crate) through: u64,
    /// Last batch that is known of.
    pub(crate) last: u64,
    /// Whole batches behind the first that is missing.
    pub(crate) later: u64,
    /// The first error of the medium: nothing more of that file is known.
    pub(crate) failed: Option<KvError>,
}

impl LogSurvey {
    /// Reads the log's files, of which each may be missing. `held` is what the log holds at least, where that is known. Damage and errors of the medium
    /// are no errors here. Each byte is read at most three times, whatever is stored in it.
    pub(crate) fn read(
        blobs: [Option<Arc<dyn Blob>>; 2],
        format: LogFormat,
        held: Option<Held>,
        applied: u64,
    ) -> Self {
        let mut survey = Self { through: applied, last: applied, ..Self::default() };
        for (file, blob) in blobs.into_iter().enumerate() {
            let known = match held {
                Some(Held::Turn { file: of, turn }) if of == file => Some(turn),
                _ => None,
            };
            let name = names(format)[file];
            if let Err(error) = survey.read_file(name, blob, format, known, applied) {
                survey.damage.push(Damage::of(name, format!("cannot be read: {error}")));
                survey.failed.get_or_insert(error);
            }
        }
        survey.stretches.sort_by_key(|(stretch, _)| (stretch.first, stretch.end));
        survey.find_gaps(applied);
        survey.compare(held, applied);
        survey
    }

    /// The first damage, or failure of the medium, as an error.
    pub(crate) fn into_whole(self) -> Result<Self, KvError> {
        match (&self.failed, self.damage.first()) {
            (Some(error), _) => Err(error.clone()),
            (None, Some(damage)) => Err(damage.into()),
            (None, None) => Ok(self),
        }
    }

    /// Gives the batches behind `after`, up to and with `through`, in order.
    pub(crate) fn load(
        &self,
        mut after: u64,
        through: u64,
        mut take: impl FnMut(u64, Rows) -> Result<(), KvError>,
    ) -> Result<(), KvError> {
        for (stretch, file) in &self.stretches {
            self.files[*file].load(*stretch, (after, through), &mut take)?;
            after = after.max(stretch.end.saturating_sub(1));
        }
        Ok(())
    }

    fn read_file(
        &mut self,
        name: &'static str,
        blob: Option<Arc<dyn Blob>>,
        format: LogFormat,
        known: Option<Turn>,
        applied: u64,
    ) -> Result<(), KvError> {
        let Some(blob) = blob else { return Ok(()) };
        let Some(file) = LogFile::open(name, blob, format, known)? else { return Ok(()) };
        let stretches = file.stretches(applied)?;
        for pair in stretches.windows(2) {
            let (last, later) = (applied.max(pair[0].end.saturating_sub(1)), pair[1].first);
            self.damage.push(Damage::of(name, format!("is broken between the batches {last} and {later}")));
        }
        // A turn that is known of from elsewhere is here only if a record of it is.
        if !file.has_beginning && format == LogFormat::Two && stretches.iter().all(Stretch::is_empty) {
            return Ok(());
        }
        let needed = stretches.into_iter().filter(|stretch| stretch.end > applied);
        self.stretches.extend(needed.map(|stretch| (stretch, self.files.len())));
        self.files.push(file);
        Ok(())
    }

    /// Finds which batches are missing between those that are there.
    fn find_gaps(&mut self, applied: u64) {
        let (mut reached, mut before) = (applied, None);
        for at in 0..self.stretches.len() {
            let (stretch, file) = self.stretches[at];
            if stretch.first > reached.saturating_add(1) {
                self.lose(reached + 1, Some(stretch.first - 1));
                if before != Some(file) {
                    let damage = gap(self.files[file].name, before.is_some(), reached, stretch.first);
                    self.damage.push(damage);
                }
                reached = stretch.first - 1;
            }
            let last = reached.max(stretch.end.saturating_sub(1));
            if self.lost.is_empty() {
                self.through = last
            } else {
                self.later += last - reached
            }
            (reached, before) = (last, Some(file));
        }
        self.last = reached;
    }

    /// Compares what was found with what the log, and the index, had for certain.
    fn compare(&mut self, held: Option<Held>, applied: u64) {
        match held {
            Some(Held::Nothing { through }) if through > applied => {
                self.damage.push(Damage::of(
                    "index",
                    format!("ends with batch {applied} and had all up to {through}: it is an older copy"),
                ));
                if through > self.last {
                    self.lose(self.last + 1, Some(through));
                    self.last = through;
                }
            }
            Some(Held::Turn { file, turn }) => self.compare_turn(names(LogFormat::Two)[file], turn),
            _ => {}
        }
    }

    /// A later turn than the one that is named is one that a crash kept from being named.
    fn compare_turn(&mut self, name: &str, turn: Turn) {
        let file = self.files.iter().find(|file| file.name == name);
        let found = file.and_then(|file| file.turn);
        if !found.is_some_and(|found| found == turn || found.first > turn.first) {
            let what = format!("does not hold the batches from {} that it held", turn.first);
            self.damage.push(Damage::of(name, what));
            self.last = self.last.max(turn.first);
            self.lose(self.through + 1, None);
        } else if file.is_some_and(|file| !file.has_beginning) {
            self.damage.push(Damage::of(name, "is damaged at its beginning"));
        }
    }

    fn lose(&mut self, first: u64, last: Option<u64>) {
        self.lost.push(LostBatches { first, last });
    }
}

/// Batches that are in no file, before those of a file: the other one, or the index, is an older copy.
fn gap(name: &'static str, of_other_file: bool, reached: u64, first: u64) -> Damage {
    let other =
        if name == names(LogFormat::Two)[0] { names(LogFormat::Two)[1] } else { names(LogFormat::Two)[0] };
    let missing = first - 1;
    if of_other_file {
        return Damage::of(other, format!("lacks the batches from {} to {missing}", reached + 1));
    }
    let what = format!(
        "ends with batch {reached}, and the batches from {} to {missing} are missing: it, or {other}, is an older copy",
        reached + 1
    );
    Damage::of("index", what)
}
