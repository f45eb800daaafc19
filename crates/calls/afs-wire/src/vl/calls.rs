//! Calls on one entry, and on the service as a whole.

use super::{Entry, EntryUpdate, LockOperation, NameText, OldEntry, ReleaseType, SERVICE, UuidEntry};
use crate::fs::Capabilities;
use crate::ids::{KindNumber, VolumeId};
use crate::rpc::Nothing;

calls! {
    service SERVICE;

    /// Makes an entry, in the old form.
    501 "CreateEntry" CreateEntry { entry: OldEntry } -> Nothing;

    /// Removes an entry.
    502 "DeleteEntry" DeleteEntry { volume: VolumeId, kind: KindNumber } -> Nothing;

    /// Reads the entry of a volume, in the old form.
    503 "GetEntryByID" GetEntryById { volume: VolumeId, kind: KindNumber } -> OldEntryReply { entry: OldEntry };

    /// Reads the entry with a name (or decimal volume number), in the old form.
    504 "GetEntryByNameO" GetEntryByNameO { name: NameText } -> OldEntryReply;

    /// Reserves volume numbers.
    505 "GetNewVolumeId" GetNewVolumeId {
        /// Number of volume ids; 0 reads the next one without reserving it.
        count: u32,
    } -> GetNewVolumeIdReply {
        /// The first of them.
        first: VolumeId,
    };

    /// Replaces an entry, in the old form.
    506 "ReplaceEntry" ReplaceEntry {
        volume: VolumeId, kind: KindNumber, entry: OldEntry, release: ReleaseType,
    } -> Nothing;

    /// Changes an entry field by field.
    507 "UpdateEntry" UpdateEntry {
        volume: VolumeId, kind: KindNumber, update: EntryUpdate, release: ReleaseType,
    } -> Nothing;

    /// Locks an entry for an operation. Locks do not expire.
    508 "SetLock" SetLock { volume: VolumeId, kind: KindNumber, operation: LockOperation } -> Nothing;

    /// Unlocks an entry.
    509 "ReleaseLock" ReleaseLock { volume: VolumeId, kind: KindNumber, release: ReleaseType } -> Nothing;

    /// Checks that the server is alive.
    514 "ProbeServer" ProbeServer {} -> Nothing;

    /// Makes an entry.
    517 "CreateEntryN" CreateEntryN { entry: Entry } -> Nothing;

    /// Reads the entry of a volume.
    518 "GetEntryByIDN" GetEntryByIdN { volume: VolumeId, kind: KindNumber } -> EntryReply { entry: Entry };

    /// Reads the entry with a name (or decimal volume number).
    519 "GetEntryByNameN" GetEntryByNameN { name: NameText } -> EntryReply;

    /// Replaces an entry, flags included.
    520 "ReplaceEntryN" ReplaceEntryN {
        volume: VolumeId, kind: KindNumber, entry: Entry, release: ReleaseType,
    } -> Nothing;

    /// Changes the entry with a name field by field.
    524 "UpdateEntryByName" UpdateEntryByName { name: NameText, update: EntryUpdate, release: ReleaseType }
        -> Nothing;

    /// Reads the entry with a name (or decimal volume number), servers given by UUID: used by clients.
    527 "GetEntryByNameU" GetEntryByNameU { name: NameText } -> UuidEntryReply { entry: UuidEntry };

    /// Exchanges the names of two entries, at once. Source: `docs/protocol/extensions.md` "Exchange of names".
    0x414E_4440 "ExchangeNames" ExchangeNames { one: VolumeId, other: VolumeId } -> Nothing;

    /// Reads the service's capabilities. OpenAFS does not know the call, which kAFS accepts.
    65537 "GetCapabilities" GetCapabilities {} -> GetCapabilitiesReply { capabilities: Capabilities };
}
