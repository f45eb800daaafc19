//! Rows of operations.

use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::operations::{Detail, OpenOperation, OperationHolder, Text};
use afs_wire::xdr::{Decode, Encode};

use super::{DETAIL_MAX, LEASE_SECONDS, OperationError, TEXT_MAX};
use crate::Refusal;

/// Operations by id: the number of the holding, then the operation as on the wire.
pub(crate) const OPERATION: &str = "op-entry";
/// Id of the operation on a volume.
pub(crate) const VOLUME: &str = "op-volume";
/// The last id assigned.
pub(crate) const META: &str = "op-meta";

/// The holder of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The user, as the holder says.
    pub who: String,
    /// The machine.
    pub host: String,
    /// The process there.
    pub pid: u32,
}

/// An operation to begin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// The kind of operation.
    pub word: String,
    /// Id of the group's read-write volume.
    pub volume: VolumeId,
    /// The volume's name.
    pub name: String,
    /// The holder that begins it.
    pub holder: Holder,
    /// Its first step.
    pub step: String,
    /// Detail for resuming it.
    pub detail: Vec<u8>,
}

/// An operation in the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its id, never reused.
    pub id: u64,
    /// Number of the present holding; it changes when the operation is taken over.
    pub holding: u64,
    /// Kind, holder and progress.
    pub draft: Draft,
    /// Start time.
    pub since: UnixSeconds,
    /// Time of the holder's last heartbeat.
    pub heard: UnixSeconds,
}

impl Kept {
    /// Whether the lease has expired. A clock that jumped back does not extend it beyond its length.
    #[must_use]
    pub fn is_lapsed(&self, now: UnixSeconds) -> bool {
        now.0.abs_diff(self.heard.0) > LEASE_SECONDS
    }

    /// The form on the wire.
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
