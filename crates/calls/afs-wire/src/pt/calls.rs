//! Calls on one user, group or membership.

use super::{Entry, EntryKind, NameText, SERVICE};
use crate::ids::ViceId;
use crate::rpc::Nothing;

/// Bits of [`SetFieldsEntry::mask`] besides the eight privacy bits.
pub mod field_mask {
    /// Every privacy bit.
    pub const ACCESS: u32 = 0xff;
    /// Set the quota of groups.
    pub const GROUP_QUOTA: u32 = 0x8000_0000;
    /// Set the quota of foreign users.
    pub const USER_QUOTA: u32 = 0x4000_0000;
}

calls! {
    service SERVICE;

    /// Makes a user or group with a chosen id.
    500 "INewEntry" INewEntry {
        name: NameText,
        /// Positive for a user, negative for a group.
        id: ViceId,
        /// Owner of a group; 0 is the caller.
        owner: ViceId,
    } -> Nothing;

    /// Puts a user (or group) into a group.
    503 "AddToGroup" AddToGroup { member: ViceId, group: ViceId } -> Nothing;

    /// Removes a user or group.
    506 "Delete" Delete { id: ViceId } -> Nothing;

    /// Takes a member out of a group.
    507 "RemoveFromGroup" RemoveFromGroup { member: ViceId, group: ViceId } -> Nothing;

    /// Makes a user or group with the next free id.
    509 "NewEntry" NewEntry {
        name: NameText,
        kind: EntryKind,
        /// Owner of a group; 0 is the caller.
        owner: ViceId,
    } -> NewEntryReply { id: ViceId };

    /// Reads the largest user id and the smallest group id.
    510 "ListMax" ListMax {} -> ListMaxReply { user: ViceId, group: ViceId };

    /// Sets the largest user id or the smallest group id.
    511 "SetMax" SetMax { id: ViceId, kind: EntryKind } -> Nothing;

    /// Reads a user or group.
    512 "ListEntry" ListEntry { id: ViceId } -> ListEntryReply { entry: Entry };

    /// Gives an entry another name, owner or id.
    513 "ChangeEntry" ChangeEntry {
        id: ViceId,
        /// Empty leaves it unchanged.
        name: NameText,
        /// 0 leaves it unchanged.
        owner: ViceId,
        /// 0 leaves it unchanged.
        new_id: ViceId,
    } -> Nothing;

    /// Reads whether a user is in a group.
    515 "IsAMemberOf" IsAMemberOf { member: ViceId, group: ViceId } -> IsAMemberOfReply { is_member: bool };

    /// Sets privacy bits and quotas.
    516 "SetFieldsEntry" SetFieldsEntry {
        id: ViceId,
        /// Which; see [`field_mask`].
        mask: u32,
        /// Privacy bits.
        flags: u32,
        group_quota: i32,
        user_quota: i32,
        spare1: i32,
        spare2: i32,
    } -> Nothing;

    /// Waits until the database has another version than the caller knows, at most 15 seconds.
    /// Source: `docs/protocol/extensions.md` "Following the protection database".
    0x414E_4441 "WaitForChange" WaitForChange {
        /// The last reply's `version`; 2^64 - 1 is none.
        known: u64,
    } -> WaitForChangeReply { version: u64 };
}
