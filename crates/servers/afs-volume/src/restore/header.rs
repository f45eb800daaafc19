//! Header of a restored volume. Source: `docs/protocol/dump.md` "2. Tags", column "Restore effect".

use afs_wire::dump::{MESSAGE_MAX, VolumeFields, WEEK};
use afs_wire::ids::UnixSeconds;

use super::RestoreAs;
use crate::staging::RestoredHeader;

/// Usage and counts are not taken from the dump: the store counts them.
pub(super) fn restored(fields: &VolumeFields, into: &RestoreAs, until: UnixSeconds) -> RestoredHeader {
    RestoredHeader {
        name: Some(into.name.clone()),
        kind: Some(into.kind),
        parent: Some(into.parent).filter(|parent| parent.0 != 0),
        read_only: Some(into.clone),
        next_unique: Some(fields.next_unique),
        max_quota: Some(fields.max_quota),
        min_quota: Some(fields.min_quota),
        owner: Some(fields.owner),
        creation_date: Some(fields.creation_date),
        clone_date: Some(until),
        access_date: Some(fields.access_date),
        update_date: Some(fields.update_date),
        expiration_date: Some(fields.expiration_date),
        backup_date: Some(fields.backup_date),
        online: (!into.keep_service).then_some(fields.in_service),
        offline_message: Some(message(&fields.offline_message)),
        uses: (!into.keep_usage).then_some((0, UnixSeconds(0), [0; WEEK])),
    }
}

/// A message set by an administrator. OpenAFS's tools leave a text of their own in the header of every volume
/// that they dump, which does not describe the restored one (section 8).
fn message(message: &[u8]) -> String {
    if message == LEFT_BY_A_TOOL {
        return String::new();
    }
    let mut text = String::from_utf8_lossy(message).into_owned();
    let end = (0..=MESSAGE_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    text
}

const LEFT_BY_A_TOOL: &[u8] = b"A volume utility is running.";
