//! Operations as rows.

use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::operations::{Detail, OpenOperation, OperationHolder, Text};
use afs_wire::xdr::{Decode, Encode};

use super::{DETAIL_MAX, LEASE_SECONDS, OperationError, TEXT_MAX};
use crate::Refusal;

/// Operations by number: which holding it is, then the operation as it travels.
pub(crate) const OPERATION: &str = "op-entry";
/// Number of the operation on a volume.
pub(crate) const VOLUME: &str = "op-volume";
/// The last number given away.
pub(crate) const META: &str = "op-meta";

/// Who holds an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The user, as he says.
    pub who: String,
    /// The machine.
    pub host: String,
    /// The process there.
    pub pid: u32,
}

/// An operation that is to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Which operation.
    pub word: String,
    /// Number of the group's read-write volume.
    pub volume: VolumeId,
    /// The volume's name.
    pub name: String,
    /// Who begins it.
    pub holder: Holder,
    /// Its first step.
    pub step: String,
    /// What is needed to resume it.
    pub detail: Vec<u8>,
}

/// An operation in the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its number, never used again.
    pub id: u64,
    /// Which holding it is: another one after it was taken over.
    pub holding: u64,
    /// What it is, who holds it, how far it got.
    pub draft: Draft,
    /// When it began.
    pub since: UnixSeconds,
    /// When its holder was last heard of.
    pub heard: UnixSeconds,
}

impl Kept {
    /// Whether the lease is over. A clock that jumped back does not prolong it beyond its length.
    #[must_use]
    pub fn is_lapsed(&self, now: UnixSeconds) -> bool {
        now.0.abs_diff(self.heard.0) > LEASE_SECONDS
    }

    /// As it travels.
    #[must_use]
    pub fn to_wire(&self, now: UnixSeconds) -> OpenOperation {
        let Draft { word, volume, name, holder, step, detail } = &self.draft;
        OpenOperation {
            id: self.id,
            word: text(word),
            volume: *volume,
            name: text(name),
            holder: OperationHolder { who: text(&holder.who), host: text(&holder.host), pid: holder.pid },
            step: text(step),
            detail: Detail::truncated(detail),
            since: self.since,
            heard: self.heard,
            lapsed: self.is_lapsed(now),
        }
    }

    pub(super) fn to_row(&self) -> Vec<u8> {
        let mut row = self.holding.to_bytes();
        self.to_wire(self.heard).encode(&mut row);
        row
    }

    pub(super) fn from_row(row: &[u8]) -> Result<Self, OperationError> {
        let damaged = || OperationError::from(crate::LocationError::from(Refusal::Damaged));
        let (holding, rest) = row.split_at_checked(8).ok_or_else(damaged)?;
        let holding = u64::from_bytes(holding).map_err(|_| damaged())?;
        let wire = OpenOperation::from_bytes(rest).map_err(|_| damaged())?;
        Ok(Self { id: wire.id, holding, since: wire.since, heard: wire.heard, draft: Draft::from(wire) })
    }
}

impl From<OpenOperation> for Draft {
    fn from(wire: OpenOperation) -> Self {
        Self {
            word: wire.word.to_text(),
            volume: wire.volume,
            name: wire.name.to_text(),
            holder: Holder::from(wire.holder),
            step: wire.step.to_text(),
            detail: wire.detail.into_vec(),
        }
    }
}

impl From<OperationHolder> for Holder {
    fn from(wire: OperationHolder) -> Self {
        Self { who: wire.who.to_text(), host: wire.host.to_text(), pid: wire.pid }
    }
}

impl Draft {
    pub(super) fn check(&self) -> Result<(), OperationError> {
        let Self { word, name, holder, step, detail, .. } = self;
        let texts = [word, name, step, &holder.who, &holder.host];
        if detail.len() > DETAIL_MAX || texts.iter().any(|t| t.len() > TEXT_MAX) {
            return Err(OperationError::TooLong);
        }
        Ok(())
    }
}

fn text(text: &str) -> Text {
    Text::truncated(text.as_bytes())
}
