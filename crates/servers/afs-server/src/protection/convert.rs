//! Conversion between wire types and database records of the protection service.

use afs_db::protection::{After, Fields, Status};
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{self, NameChars, NameText, field_mask};

/// A name to be stored.
pub(super) fn name(text: &NameText) -> Result<String, AbortCode> {
    String::from_utf8(text.to_vec()).map_err(|_| AbortCode::PRBADNAM)
}

/// A name to be looked up; one that is not valid text matches no entry.
pub(super) fn looked_up(chars: &NameChars) -> String {
    String::from_utf8(chars.text().to_vec()).unwrap_or_default()
}

/// An optional id: in many arguments 0 stands for "unchanged" or "none".
pub(super) fn given(id: ViceId) -> Option<ViceId> {
    Some(id).filter(|id| *id != ViceId(0))
}

pub(super) fn entry(status: &Status) -> pt::Entry {
    let Status { entry, count } = status;
    pt::Entry {
        flags: entry.privacy.0.into(),
        id: entry.id,
        owner: entry.owner,
        creator: entry.creator,
        group_quota: entry.group_quota,
        user_quota: entry.user_quota,
        count: i32::try_from(*count).unwrap_or(i32::MAX),
        reserved: pt::Entry::reserved_with(entry.tokens.0),
        name: NameChars::truncated(entry.name.as_bytes()),
    }
}

pub(super) fn fields(call: &pt::SetFieldsEntry) -> Fields {
    let set = |bit: u32, quota: i32| (call.mask & bit != 0).then_some(quota);
    Fields {
        privacy_mask: (call.mask & field_mask::ACCESS) as u8,
        privacy: (call.flags & field_mask::ACCESS) as u8,
        group_quota: set(field_mask::GROUP_QUOTA, call.group_quota),
        user_quota: set(field_mask::USER_QUOTA, call.user_quota),
        revoke_tokens: None,
    }
}

/// A cursor on the wire: the id it stands behind, which is never 0.
pub(super) fn cursor(next: Option<After>, end: i32) -> i32 {
    next.map_or(end, |After(id)| id.0)
}
