//! Position and findings of a scrub, persistent across restarts.

use afs_wire::ids::{UnixSeconds, VnodeId, VolumeId};
use bytes::Bytes;

use super::Scrub;
use crate::codec::{Decoded, Fields, Put};
use crate::data_walk::DataWalk;
use crate::error::VolumeError;
use crate::ids::SlotIndex;
use crate::key::META;
use crate::store::VolumeStore;

/// One pass over all data of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubRound {
    /// Start; 0 before the first.
    pub began: UnixSeconds,
    /// End; 0 while it runs.
    pub ended: UnixSeconds,
    /// Bytes of chunks that were read.
    pub bytes: u64,
    /// Number of damages found.
    pub bad: u64,
    /// Number of damages repaired.
    pub repaired: u64,
}

/// The scrub of a store.
#[derive(Clone, Debug, Default)]
pub struct ScrubState {
    /// Where the next step continues.
    pub position: Scrub,
    /// The current round.
    pub now: ScrubRound,
    /// The last complete round.
    pub last: ScrubRound,
}

impl VolumeStore {
    /// The state last written by [`VolumeStore::keep_scrub`]. An unreadable record counts as none: the scrub
    /// then starts again.
    pub fn scrub_state(&self) -> Result<ScrubState, VolumeError> {
        let kept = self.store.kv.snapshot().get(META, SCRUB_KEY)?;
        Ok(kept.and_then(|kept| ScrubState::decode(kept).ok()).unwrap_or_default())
    }

    /// Writes the state of the scrub.
    pub async fn keep_scrub(&self, state: &ScrubState) -> Result<(), VolumeError> {
        let encoded = state.encode();
        let kept = self.store.kv.update(move |txn| {
            txn.put(META, SCRUB_KEY, encoded);
            Ok::<_, VolumeError>(())
        });
        Ok(kept.await?)
    }
}

impl ScrubState {
    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::new();
        let walk = &self.position.walk;
        let (within, slot) = walk.within.unwrap_or((VnodeId(0), SlotIndex(0)));
        for number in [walk.volume.0, walk.after.0, within.0, slot.0] {
            row.put_u32(number);
        }
        self.now.put(&mut row);
        self.last.put(&mut row);
        row
    }

    pub(crate) fn decode(row: Bytes) -> Decoded<Self> {
        let mut fields = Fields::new(row);
        let (volume, after) = (VolumeId(fields.u32()?), VnodeId(fields.u32()?));
        let within =
            Some((VnodeId(fields.u32()?), SlotIndex(fields.u32()?))).filter(|(vnode, _)| vnode.0 != 0);
        let position = Scrub { walk: DataWalk { volume, after, within } };
        let state =
            Self { position, now: ScrubRound::take(&mut fields)?, last: ScrubRound::take(&mut fields)? };
        fields.finish()?;
        Ok(state)
    }
}

impl ScrubRound {
    fn put(&self, row: &mut Vec<u8>) {
        row.put_u32(self.began.0);
        row.put_u32(self.ended.0);
        for number in [self.bytes, self.bad, self.repaired] {
            row.put_u64(number);
        }
    }

    fn take(fields: &mut Fields) -> Decoded<Self> {
        Ok(Self {
            began: UnixSeconds(fields.u32()?),
            ended: UnixSeconds(fields.u32()?),
            bytes: fields.u64()?,
            bad: fields.u64()?,
            repaired: fields.u64()?,
        })
    }
}

const SCRUB_KEY: &[u8] = b"scrub";
