//! Checkpoint: moves committed rows from memory into the base, and rotates the log between its two blobs.

use std::sync::Arc;

use crate::base::Base;
use crate::error::KvError;
use crate::kv::Kv;
use crate::log::Log;
use crate::memtable::Memtable;
use crate::snapshot::Layers;

/// Progress of the checkpoint.
#[derive(Default)]
pub(crate) struct Progress {
    state: State,
    /// The last batch in the frozen memory table.
    frozen_through: u64,
    /// The writer stopped because the log is full; the checkpoint restarts it at its end.
    writer_waits: bool,
    needs_reopen: bool,
    /// The medium was full when the memory table was frozen.
    is_tight: bool,
}

#[derive(Default)]
enum State {
    #[default]
    Idle,
    Running,
    Failed,
}

/// Whether the log has room for a batch.
pub(crate) enum Room {
    /// For one with at most this many bytes of rows.
    Ready(usize),
    /// Not before the running checkpoint has ended, which restarts the writer.
    Later,
    Refused(KvError),
}

enum Step {
    Done(Room),
    Start,
    Retry,
}

impl Progress {
    pub(crate) fn begin(&mut self, frozen_through: u64) {
        self.state = State::Running;
        self.frozen_through = frozen_through;
    }

    pub(crate) fn wound(&mut self) {
        self.needs_reopen = true;
    }
}

impl Kv {
    /// Makes room in the log for a batch, by starting or retrying a checkpoint if necessary.
    pub(crate) fn make_room(&self) -> Room {
        loop {
            match self.next_step() {
                Step::Done(room) => return room,
                Step::Start => {
                    let kv = self.clone();
                    self.engine.env.blocking(Box::new(move || drop(kv.checkpoint_frozen())));
                }
                Step::Retry => {
                    if let Err(error) = self.checkpoint_frozen() {
                        return Room::Refused(error);
                    }
                }
            }
        }
    }

    /// Moves everything committed so far into the base. For a clean stop, so that the next open replays nothing; does
    /// nothing while a checkpoint is running. Blocks on the medium.
    pub fn checkpoint(&self) -> Result<(), KvError> {
        {
            let mut log = self.engine.log.lock();
            let mut progress = self.engine.progress.lock();
            match progress.state {
                State::Running => return Ok(()),
                State::Failed => progress.state = State::Running,
                State::Idle if progress.needs_reopen => return Err(KvError::NeedsReopen),
                State::Idle => {
                    self.freeze(&mut progress, &log);
                    log.rotate();
                }
            }
        }
        self.checkpoint_frozen()?;
        // With the log locked no batch becomes visible.
        let mut log = self.engine.log.lock();
        let progress = self.engine.progress.lock();
        let through = progress.frozen_through;
        let has_all = matches!(progress.state, State::Idle) && through == self.engine.published.visible();
        drop(progress);
        if has_all { Ok(log.emptied(through)?) } else { Ok(()) }
    }

    fn next_step(&self) -> Step {
        let mut log = self.engine.log.lock();
        let is_full = log.is_full();
        let mut progress = self.engine.progress.lock();
        if progress.needs_reopen {
            return Step::Done(Room::Refused(KvError::NeedsReopen));
        }
        if !is_full {
            return Step::Done(Room::Ready(log.batch_bytes()));
        }
        match progress.state {
            State::Idle => {
                self.freeze(&mut progress, &log);
                log.rotate();
                Step::Start
            }
            State::Running => {
                progress.writer_waits = true;
                Step::Done(Room::Later)
            }
            State::Failed => {
                progress.state = State::Running;
                Step::Retry
            }
        }
    }

    fn freeze(&self, progress: &mut Progress, log: &Log) {
        progress.is_tight = log.is_tight();
        progress.begin(self.engine.published.visible());
        self.engine.published.replace(|layers| Layers {
            active: Arc::default(),
            frozen: Some(layers.active.clone()),
            base: layers.base.clone(),
        });
    }

    /// Moves the frozen memory table into the base.
    pub(crate) fn checkpoint_frozen(&self) -> Result<(), KvError> {
        let through = self.engine.progress.lock().frozen_through;
        let result = self.absorb(through);
        let resume = {
            let mut progress = self.engine.progress.lock();
            progress.state = if result.is_ok() { State::Idle } else { State::Failed };
            std::mem::take(&mut progress.writer_waits)
        };
        if let Err(error) = &result {
            tracing::warn!(%error, "a checkpoint failed; it will be tried again");
        }
        if resume {
            self.schedule_drain();
        }
        result
    }

    fn absorb(&self, through: u64) -> Result<(), KvError> {
        let is_tight = self.engine.progress.lock().is_tight;
        let mut base = self.engine.base.lock();
        let Some(frozen) = self.engine.published.layers().frozen.clone() else { return Ok(()) };
        let mut result = Err(KvError::NoSpace);
        if !is_tight {
            result = base.absorb(&frozen, through);
        }
        if matches!(result, Err(KvError::NoSpace)) {
            result = self.absorb_in_pieces(&mut base, &frozen, through);
        }
        if result.is_ok() {
            self.engine.spare.checkpoint_ended();
        }
        // After a failure the base was opened again, and older views of it are invalid.
        self.show(&base, result.is_ok())?;
        result
    }

    /// Takes the least room on the medium: each piece has the pages that those before it no longer need, since nobody reads them.
    fn absorb_in_pieces(&self, base: &mut Base, frozen: &Memtable, through: u64) -> Result<(), KvError> {
        let mut after = None;
        loop {
            self.show(base, false)?;
            after = base.absorb_piece(frozen, after.as_ref())?;
            if after.is_none() {
                return base.absorb(&Memtable::default(), through);
            }
        }
    }

    /// Lets readers see the base as it is, in the place of the frozen memory table or below it.
    fn show(&self, base: &Base, has_frozen: bool) -> Result<(), KvError> {
        let view = Arc::new(base.view()?);
        self.engine.published.replace(|layers| Layers {
            active: layers.active.clone(),
            frozen: if has_frozen { None } else { layers.frozen.clone() },
            base: view,
        });
        Ok(())
    }
}
