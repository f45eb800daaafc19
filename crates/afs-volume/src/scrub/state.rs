//! How far a scrub is and what it has seen, kept across restarts.

use afs_wire::ids::{UnixSeconds, VnodeId, VolumeId};
use bytes::Bytes;

use super::Scrub;
use crate::codec::{Decoded, Fields, Put};
use crate::error::VolumeError;
use crate::ids::SlotIndex;
use crate::key::META;
use crate::store::VolumeStore;

/// One look at everything that the store has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubRound {
    /// When it began; 0 before the first.
    pub began: UnixSeconds,
    /// When it ended; 0 while it is under way.
    pub ended: UnixSeconds,
    /// Bytes of chunks that were read.
    pub bytes: u64,
    /// Damages that were seen.
    pub bad: u64,
    /// How many of them were repaired.
    pub repaired: u64,
}

/// The scrub of a store.
#[derive(Clone, Debug, Default)]
pub struct ScrubState {
    /// Where the next step goes on.
    pub place: Scrub,
    /// The round under way.
    pub now: ScrubRound,
    /// The last complete one.
    pub last: ScrubRound,
}

impl VolumeStore {
    /// What [`VolumeStore::keep_scrub`] has kept. A record that cannot be read counts as none: a scrub begins anew then.
    pub fn scrub_state(&self) -> Result<ScrubState, VolumeError> {
        let kept = self.store.kv.snapshot().get(META, SCRUB_KEY)?;
        Ok(kept.and_then(|kept| ScrubState::decode(kept).ok()).unwrap_or_default())
    }

    /// Keeps the state of the scrub.
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
        let (within, slot) = self.place.within.unwrap_or((VnodeId(0), SlotIndex(0)));
        for number in [self.place.volume.0, self.place.after.0, within.0, slot.0] {
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
        let place = Scrub { volume, after, within };
        let state = Self { place, now: ScrubRound::take(&mut fields)?, last: ScrubRound::take(&mut fields)? };
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
