//! Claims of what clients staged at drives, before a transaction makes it a file's: at the drives at which the file server's own
//! writer would have put it.

use std::collections::BTreeSet;

use afs_drive::{BoxFuture, ChunkRef, DriveError, DriveId, StagedChunks};
use afs_env::EnvExt;

use crate::error::VolumeError;
use crate::extent::SLOT_LEN;
use crate::ids::SlotIndex;
use crate::located::LocatedChunk;
use crate::new_data::{NewData, Piece, Stored};
use crate::staged::{StagedParts, StagedPlace};
use crate::targets::{NamedDrive, Targets};
use crate::volume::Volume;

/// The drives at which clients are to stage the chunks of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StagingPlaces {
    /// Those for the chunk of slot s are the element s modulo their number, the drive that references name first. Neither they nor one
    /// of them is empty.
    pub rounds: Vec<Vec<DriveId>>,
    /// Drives that should have chunks, and did not answer a moment ago.
    pub left_out: Vec<DriveId>,
}

/// What a drive has to be asked with, beside the chunks.
#[derive(Clone, Copy, Debug)]
pub struct StagedIn {
    /// The drive.
    pub drive: DriveId,
    /// The drive's name of the client's room.
    pub tag: [u8; 8],
}

/// Chunks that one drive is asked for.
struct Claim {
    drive: NamedDrive,
    chunks: Vec<ChunkRef>,
    given: BoxFuture<Result<(), DriveError>>,
}

/// What drives have given.
#[derive(Default)]
struct Claimed {
    given: Vec<(NamedDrive, Vec<ChunkRef>)>,
    /// Drives that have failed, of which it is not known whether they have given anything.
    failed: Vec<(DriveId, DriveError)>,
    /// Whether one has said that it does not have what it is asked for.
    is_refused: bool,
}

impl Volume {
    /// The drives for new data, if clients may stage them there. Asks the drives if that is not known. `None` also if one of them does
    /// not answer that has answered before: the next store of the file server finds out whether it is to be left out.
    pub async fn staging_places(&self) -> Option<StagingPlaces> {
        let (store, targets) = (self.store(), self.targets());
        let slots = 0..targets.width() as u64;
        let of_slot = |slot| targets.of_slot(slot, |id| store.is_away(id));
        let rounds: Vec<_> = slots.clone().map(of_slot).collect();
        let mut known = BTreeSet::new();
        for (id, drive) in rounds.iter().flatten() {
            if known.insert(*id) && !drive.takes_staged().await {
                return None;
            }
        }
        let all: BTreeSet<_> = slots.flat_map(|slot| targets.all_of_slot(slot)).map(|(id, _)| *id).collect();
        let ids = |round: Vec<NamedDrive>| round.into_iter().map(|(id, _)| id).collect();
        let left_out = all.difference(&known).copied().collect();
        Some(StagingPlaces { rounds: rounds.into_iter().map(ids).collect(), left_out })
    }

    fn targets(&self) -> Targets {
        Targets::new(self.store().drives.list(), self.header().placement, SlotIndex(0))
    }

    /// Makes staged chunks the store's: they are part of a file after [`VolumeTx::store_data`](crate::VolumeTx), or
    /// discarded with what is returned. The places of the parts name elements of `from`. A drive that fails is left out, as by a store
    /// of the file server itself, if the others have all parts.
    ///
    /// # Errors
    /// `NotStaged` if one of the drives does not have what is claimed there, or a part is not where the volume's new data go:
    /// on each of its drives but those in `left_out` and those that are away. Errors of the drives.
    pub async fn claim(
        &self,
        parts: StagedParts,
        from: &[StagedIn],
        left_out: &[DriveId],
    ) -> Result<NewData, VolumeError> {
        let (store, targets) = (self.store().clone(), self.targets());
        let may_lack = |id| left_out.contains(&id) || store.is_away(id);
        if !parts.parts().all(|part| is_placed(&targets, part, from, may_lack)) {
            return Err(VolumeError::NotStaged);
        }
        let claims = begin(&targets, &parts, from);
        let ids: Vec<_> = from.iter().map(|from| from.drive).collect();
        // A task: the caller may be gone when the drives have given the chunks, and then they are discarded.
        let (env, mut targets) = (store.env.clone(), targets);
        let claimed = env.start_with_result(env.stall(), async move {
            let claimed = Claimed::by(claims).await;
            for (id, error) in &claimed.failed {
                store.note_failure(*id, error);
                targets.fails(*id, error);
            }
            let mut data = claimed.into_data(&parts, &ids)?;
            data.request_copies(&targets, |id| store.is_away(id));
            Ok(data)
        });
        claimed.await.unwrap_or(Err(VolumeError::Drive(DriveError::Closed)))
    }
}

/// Whether a part is at the drives that are to have it, in their order, but for some that may lack it.
fn is_placed(
    targets: &Targets,
    part: &[StagedPlace],
    from: &[StagedIn],
    may_lack: impl Fn(DriveId) -> bool,
) -> bool {
    let drive_of = |place: &StagedPlace| from.get(place.at).map(|from| from.drive);
    let mut places = part.iter().peekable();
    let slot = part.first().map_or(0, |place| place.position / SLOT_LEN);
    let has_all = targets.all_of_slot(slot).all(|(id, _)| {
        let is_there = places.next_if(|place| drive_of(place) == Some(*id)).is_some();
        is_there || may_lack(*id)
    });
    has_all && places.next().is_none()
}

/// Asks each drive for its chunks, all at once.
fn begin(targets: &Targets, parts: &StagedParts, from: &[StagedIn]) -> Vec<Claim> {
    let of_drive = |(at, from): (usize, &StagedIn)| {
        let places = parts.places().iter().filter(|place| place.at == at);
        let chunks: Vec<_> = places.map(|place| place.chunk).collect();
        let drive = targets.named(from.drive).filter(|_| !chunks.is_empty())?;
        let given = drive.1.claim(StagedChunks { tag: from.tag, chunks: chunks.clone() });
        Some(Claim { drive, chunks, given })
    };
    from.iter().enumerate().filter_map(of_drive).collect()
}

impl Claimed {
    /// Waits for all drives: what one has given is to be discarded if another one refuses.
    async fn by(claims: Vec<Claim>) -> Self {
        let mut claimed = Self::default();
        for Claim { drive, chunks, given } in claims {
            match given.await {
                Ok(()) => claimed.given.push((drive, chunks)),
                // A drive that was started again has nothing staged.
                Err(DriveError::NotStaged | DriveError::Forgotten) => claimed.is_refused = true,
                Err(error) => claimed.failed.push((drive.0, error)),
            }
        }
        claimed
    }

    fn into_data(self, parts: &StagedParts, from: &[DriveId]) -> Result<NewData, VolumeError> {
        let has_given = |id| self.given.iter().any(|((drive, _), _)| *drive == id);
        let located = |place: &StagedPlace| {
            let drive = from.get(place.at).copied().filter(|id| has_given(*id))?;
            Some(LocatedChunk { drive, chunk: place.chunk })
        };
        let piece = |part: &[StagedPlace]| {
            let position = part.first()?.position;
            let mut places = part.iter().filter_map(located);
            let first = places.next()?;
            Some(Piece { position, stored: Stored::Chunk(first, places.collect()) })
        };
        let pieces: Option<Vec<_>> = parts.parts().map(piece).collect();
        match pieces.filter(|_| !self.is_refused) {
            Some(pieces) => {
                let places = parts.places();
                let start = places.first().map_or(0, |place| place.position);
                let end = places.last().map_or(0, |place| place.position + u64::from(place.chunk.len));
                let drives = self.given.into_iter().map(|(drive, _)| drive).collect();
                Ok(NewData::on_drives(start..end, parts.bytes(), pieces, drives))
            }
            None => Err(self.give_up()),
        }
    }

    /// Discards what was given.
    fn give_up(self) -> VolumeError {
        for ((_, drive), chunks) in self.given {
            // The drive works on its own; chunks that it cannot free are found by the next sweep.
            drop(drive.discard(chunks));
        }
        match self.failed.into_iter().next() {
            Some((_, error)) if !self.is_refused => error.into(),
            _ => VolumeError::NotStaged,
        }
    }
}
