//! Lock of an entry in the location database, which excludes OpenAFS's tools and ours from each other.
//!
//! Locks have no owner and do not expire, so only an operation in the journal takes one: the journal then
//! says whose lock it is when the operation is resumed.

use afs_rpc::CallError;
use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, VolumeId};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, ReleaseLock, ReleaseType, SetLock};

use crate::Admin;
use crate::error::{AdminError, AdminResult};

impl Admin {
    /// Refuses, before anything is recorded, when the entry is locked by a holder that the journal does not
    /// know.
    pub(crate) fn check_unlocked(entry: &Entry) -> AdminResult {
        if entry.flags.intersects(EntryFlags::LOCK_OPERATIONS.without(RELEASE_BIT)) {
            return Err(locked_by_others(&entry.name.to_string()));
        }
        Ok(())
    }

    /// Locks an entry and reads it.
    pub(crate) async fn lock_entry(
        &self,
        volume: VolumeId,
        name: &str,
        operation: LockOperation,
    ) -> AdminResult<Entry> {
        let request = SetLock { volume, kind: KindNumber::ANY, operation };
        let (locked, again) = self.locate_again(&request).await;
        let doing = || format!("Could not lock the VLDB entry of {name}");
        match locked {
            Ok(()) => self.existing_entry(volume, name).await,
            Err(CallError::Abort(AbortCode::VL_RERELEASE)) if operation == LockOperation::RELEASE => {
                self.existing_entry(volume, name).await
            }
            Err(CallError::Abort(AbortCode::VL_ENTRYLOCKED)) if !again => Err(locked_by_others(name)),
            Err(error) if !again => Err(AdminError::call(doing(), None, error)),
            // A reply was lost. The entry was seen unlocked just before: a lock of this kind is this
            // operation's.
            Err(error) => {
                let entry = self.existing_entry(volume, name).await?;
                if entry.flags.intersects(EntryFlags(operation.0)) {
                    return Ok(entry);
                }
                Err(AdminError::call(doing(), None, error))
            }
        }
    }

    /// Unlocks an entry. A missing entry is no error.
    pub(crate) async fn unlock_entry(&self, volume: VolumeId, name: &str) -> AdminResult {
        let request = ReleaseLock { volume, kind: KindNumber::ANY, release: ReleaseType::ALL };
        match self.locate(&request).await {
            Ok(()) | Err(CallError::Abort(AbortCode::VL_NOENT)) => Ok(()),
            Err(error) => {
                Err(AdminError::call(format!("Could not unlock the VLDB entry of {name}"), None, error)
                    .with_hint(format!("`andrew vos unlock {name}` does it later")))
            }
        }
    }

    /// The entry of a volume that must exist.
    pub(crate) async fn existing_entry(&self, volume: VolumeId, name: &str) -> AdminResult<Entry> {
        self.entry(volume).await?.ok_or_else(|| {
            AdminError::failed(format!("Could not read the VLDB entry of {name}"), "it is gone")
        })
    }
}

/// Set without a lock by a release that did not finish.
const RELEASE_BIT: EntryFlags = EntryFlags(LockOperation::RELEASE.0);

fn locked_by_others(name: &str) -> AdminError {
    AdminError::refused(
        format!("Could not lock the VLDB entry of {name}"),
        "somebody else is working on the volume",
    )
    .with_hint(format!(
        "`andrew vos examine {name}` shows who; if nobody is, `andrew vos unlock {name}` ends a lock that was left behind"
    ))
}
