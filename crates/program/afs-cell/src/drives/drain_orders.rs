//! Orders to drain a drive, as the owner gives, changes and ends them; [`super::draining`] carries them out.

use super::attached::Inner;
use super::draining::RATE;
use super::{DrainOrder, DriveAnswer, DrivesError};

impl Inner {
    /// Orders that what is on a drive is moved to another one, or that this goes on otherwise.
    pub(super) fn drain(
        &self,
        name: &str,
        to: Option<&str>,
        rate: Option<u64>,
    ) -> Result<DriveAnswer, DrivesError> {
        let refused = |why: &str| Err(DrivesError::Drain(name.to_owned(), why.to_owned()));
        let (id, to) = (self.id(name)?, to.map(|to| self.id(to)).transpose()?);
        if self.partitions.iter().any(|(_, store)| store.drives_in_use().contains(&id)) {
            return refused(
                "takes new data or copies; let another drive take them first: andrew drive use NAME",
            );
        }
        self.takes_no_tier(&self.registry.lock(), name, id)?;
        if to == Some(id) {
            return refused("cannot be drained to itself");
        }
        if let Some(to) = to {
            self.is_there(to)?;
        }
        let mut registry = self.registry.lock().clone();
        if registry.draining().any(|(draining, _)| Some(draining) == to) {
            return refused("cannot be drained to a drive that is drained itself");
        }
        let before = registry.draining().find(|(draining, _)| *draining == id).map(|(_, order)| order);
        // What is not said stays as it was ordered before.
        let order = DrainOrder {
            to: to.map(|to| to.0).or(before.and_then(|before| before.to)),
            rate: rate.or(before.map(|before| before.rate)).unwrap_or(RATE).max(1),
        };
        registry.set_draining(id, Some(order));
        self.keep(registry)?;
        self.drains.start(id, order);
        self.drain_line(name)
    }

    /// How far that has come.
    pub(super) fn drain_line(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let line = self.drains.line(self.id(name)?);
        let none = || DrivesError::Drain(name.to_owned(), "is not drained".to_owned());
        line.map(DriveAnswer::Drain).ok_or_else(none)
    }

    /// Ends it: what was moved stays where it is.
    pub(super) fn cancel_drain(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let (id, mut registry) = (self.id(name)?, self.registry.lock().clone());
        registry.set_draining(id, None);
        self.keep(registry)?;
        self.drains.cancel(id);
        Ok(DriveAnswer::Done)
    }
}
