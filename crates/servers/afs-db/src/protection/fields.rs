//! Privacy, quotas and token generation of an entry.

use afs_rpc::UnixTime;
use afs_wire::ids::ViceId;

use super::access::{self, Right};
use super::{Known, Privacy, ProtectionError, Refusal, Requester, rows};
use crate::RowsMut;

/// The fields to set; unchecked.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Fields {
    /// Mask of the privacy bits to set.
    pub privacy_mask: u8,
    /// Their new values.
    pub privacy: u8,
    /// Number of further groups that a user may create.
    pub group_quota: Option<i32>,
    /// Quota of foreign users.
    pub user_quota: Option<i32>,
    /// Revokes the tokens that a user has at this time. Only the cell does that: it has decided who may.
    pub revoke_tokens: Option<UnixTime>,
}

/// Sets fields (docs/protocol ptserver.md "4. Access control inside PR", SetFieldsEntry).
pub(super) fn set(
    rows: &mut (impl RowsMut + ?Sized),
    requester: &Requester,
    id: ViceId,
    fields: Fields,
) -> Result<(), ProtectionError> {
    let quotas = [fields.group_quota, fields.user_quota];
    if fields.privacy_mask == 0 && quotas == [None, None] && fields.revoke_tokens.is_none() {
        return Ok(());
    }
    let known = Known::of(rows, requester)?;
    if matches!(id, ViceId::ANYUSER | ViceId::AUTHUSER | ViceId::ANONYMOUS) {
        return Err(Refusal::Permission.into());
    }
    let mut entry = rows::find(rows, id)?;
    access::check(requester, &known, &entry, Right::Change)?;
    if quotas != [None, None] || fields.revoke_tokens.is_some() {
        known.administrator_only()?;
    }
    if quotas.into_iter().flatten().any(|quota| quota < 0) {
        return Err(Refusal::BadArgument.into());
    }
    if fields.revoke_tokens.is_some() && id.is_group() {
        return Err(Refusal::BadArgument.into());
    }
    if let Some(now) = fields.revoke_tokens {
        entry.tokens = entry.tokens.after(now);
    }
    let kept = entry.privacy.0 & !fields.privacy_mask;
    entry.privacy = Privacy(kept | fields.privacy & fields.privacy_mask);
    entry.group_quota = fields.group_quota.unwrap_or(entry.group_quota);
    entry.user_quota = fields.user_quota.unwrap_or(entry.user_quota);
    rows::put(rows, &entry)
}
