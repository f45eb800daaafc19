//! Connections to the drives that layouts name, each with its failures.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::Instant;

use super::super::failures::Failures;
use super::super::fallback::Fallback;
use super::super::link::Link;
use super::super::offer::Offer;
use crate::api::ExplainedDrive;

/// Most drives of one file server that are known at a time.
const DRIVES_MAX: usize = 32;

/// The drives.
#[derive(Default)]
pub(super) struct DriveLinks(Vec<Known>);

struct Known {
    offer: Offer,
    link: Option<Arc<Link>>,
    is_opening: bool,
    failures: Failures,
    last: Option<Fallback>,
}

/// How a drive is reached.
pub(super) enum Way {
    Link(Arc<Link>),
    /// To be opened by who is told so.
    Open,
    Fallback(Fallback),
}

impl DriveLinks {
    /// How a drive is reached now. Who is told to open it must call [`DriveLinks::opened`] or [`DriveLinks::not_opened`].
    pub fn way(&mut self, offer: &Offer, now: Instant) -> Way {
        let Some(known) = self.known(offer) else { return Way::Fallback(Fallback::Full) };
        known.link = known.link.take().filter(|link| link.lost().is_none());
        match &known.link {
            Some(link) => Way::Link(link.clone()),
            None if known.is_opening => Way::Fallback(Fallback::Connecting),
            None if known.failures.is_pausing(now) => Way::Fallback(Fallback::Paused),
            None => {
                known.is_opening = true;
                Way::Open
            }
        }
    }

    pub fn opened(&mut self, link: Arc<Link>) {
        if let Some(known) = self.0.iter_mut().find(|known| known.offer.is_same_drive(&link.offer)) {
            (known.is_opening, known.link) = (false, Some(link));
        }
    }

    pub fn not_opened(&mut self, offer: &Offer, why: Fallback, now: Instant) {
        if let Some(known) = self.0.iter_mut().find(|known| known.offer.is_same_drive(offer)) {
            known.is_opening = false;
            known.note_failure(why, now);
        }
    }

    /// A connection is given up for its failure. How long the drive is left alone.
    pub fn failed(&mut self, link: &Arc<Link>, why: Fallback, now: Instant) -> Option<Duration> {
        self.close(link);
        let known = self.0.iter_mut().find(|known| known.offer.is_same_drive(&link.offer))?;
        Some(known.note_failure(why, now))
    }

    pub fn succeeded(&mut self, link: &Link) {
        if let Some(known) = self.0.iter_mut().find(|known| known.offer.is_same_drive(&link.offer)) {
            known.failures.forget();
            known.last = None;
        }
    }

    /// Drops a connection.
    pub fn close(&mut self, link: &Arc<Link>) {
        for known in &mut self.0 {
            known.link = known.link.take().filter(|open| !Arc::ptr_eq(open, link));
        }
    }

    /// Whether any connection is open.
    pub fn is_any_open(&self) -> bool {
        self.0.iter().filter_map(|known| known.link.as_ref()).any(|link| link.lost().is_none())
    }

    /// What is known of a drive. For a new one the first is forgotten that is not being opened if there are too many.
    fn known(&mut self, offer: &Offer) -> Option<&mut Known> {
        if let Some(place) = self.0.iter().position(|known| known.offer.is_same_drive(offer)) {
            return self.0.get_mut(place);
        }
        if self.0.len() >= DRIVES_MAX {
            let place = self.0.iter().position(|known| !known.is_opening)?;
            self.0.remove(place);
        }
        let (link, failures) = (None, Failures::default());
        self.0.push(Known { offer: offer.clone(), link, is_opening: false, failures, last: None });
        self.0.last_mut()
    }

    /// All drives that are known, for a user.
    pub fn explained(&self, now: Instant) -> Vec<ExplainedDrive> {
        self.0.iter().map(|known| known.explained(now)).collect()
    }
}

impl Known {
    fn note_failure(&mut self, why: Fallback, now: Instant) -> Duration {
        self.last = Some(why);
        self.failures.note(now)
    }

    fn explained(&self, now: Instant) -> ExplainedDrive {
        let is_open = self.link.as_ref().is_some_and(|link| link.lost().is_none());
        let state = match self.last {
            _ if is_open => "in use".into(),
            _ if self.is_opening => "connecting".into(),
            Some(why) => format!("failed: {}", why.name()),
            None => "idle".into(),
        };
        ExplainedDrive {
            address: self.offer.addresses.first().map(ToString::to_string).unwrap_or_default(),
            state,
            paused_seconds: self.failures.pause(now).map(|pause| pause.as_secs()),
        }
    }
}
