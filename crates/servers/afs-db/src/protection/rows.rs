//! Tables of the protection database, and access to their rows.

use afs_wire::ids::ViceId;

use super::{Entry, ProtectionError, Refusal, gone};
use crate::rows::number;
use crate::{Rows, RowsMut};

/// Users and groups by id.
pub(crate) const ENTRY: &str = "pt-entry";
/// Id of a user or group by its name.
pub(crate) const NAME: &str = "pt-name";
/// Memberships by group: group and member, no value.
pub(crate) const MEMBER: &str = "pt-member";
/// Memberships by member: member and group, no value.
pub(crate) const GROUP: &str = "pt-group";
/// Number of members of a group, or of groups of a user.
pub(crate) const COUNT: &str = "pt-count";
/// Groups by owner: owner (0 for none) and group, no value.
pub(crate) const OWNED: &str = "pt-owned";
/// Counters.
pub(crate) const META: &str = "pt-meta";

const MAX_USER: &[u8] = b"max-user";
const MAX_GROUP: &[u8] = b"max-group";

/// The key of an id. Keys are in the order of ids, negative ones first.
pub(super) fn key(id: ViceId) -> [u8; 4] {
    (id.0 as u32 ^ 0x8000_0000).to_be_bytes()
}

/// The key of two ids.
pub(super) fn pair(first: ViceId, second: ViceId) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (key(first), key(second));
    [a, b, c, d, e, f, g, h]
}

/// The id in the last four bytes of a key.
fn last_id(row: &[u8]) -> Result<ViceId, ProtectionError> {
    let bytes = row.last_chunk::<4>().ok_or(Refusal::Damaged)?;
    Ok(ViceId((u32::from_be_bytes(*bytes) ^ 0x8000_0000) as i32))
}

/// The second ids of at most `limit` pairs that start with `first`, from the second id `from` on, ascending.
pub(super) fn seconds(
    rows: &(impl Rows + ?Sized),
    table: &'static str,
    first: ViceId,
    from: ViceId,
    limit: usize,
) -> Result<Vec<ViceId>, ProtectionError> {
    // Longer than any pair, so it sorts after the last one.
    let until = [&key(first)[..], &[0xff; 5]].concat();
    let found = rows.range(table, &pair(first, from), &until, limit)?;
    found.iter().map(|(key, _)| last_id(key)).collect()
}

/// Entries in the order of their ids: at most `limit`, from `from` to `last`.
pub(super) fn entries(
    rows: &(impl Rows + ?Sized),
    from: ViceId,
    last: ViceId,
    limit: usize,
) -> Result<Vec<Entry>, ProtectionError> {
    let until = [&key(last)[..], &[0]].concat();
    let found = rows.range(ENTRY, &key(from), &until, limit)?;
    found.iter().map(|(key, row)| Entry::decode(last_id(key)?, row)).collect()
}

/// The entry of an id, if there is one.
pub(super) fn entry(rows: &(impl Rows + ?Sized), id: ViceId) -> Result<Option<Entry>, ProtectionError> {
    rows.get(ENTRY, &key(id))?.map(|row| Entry::decode(id, &row)).transpose()
}

/// The entry of an id that must exist.
pub(super) fn find(rows: &(impl Rows + ?Sized), id: ViceId) -> Result<Entry, ProtectionError> {
    entry(rows, id)?.ok_or_else(|| Refusal::NoEntry.into())
}

/// The id behind a name.
pub(super) fn id_of(rows: &(impl Rows + ?Sized), name: &str) -> Result<Option<ViceId>, ProtectionError> {
    let row = rows.get(NAME, name.as_bytes())?;
    Ok(row.map(|row| number(&row)).transpose()?.map(|id| ViceId(id as i32)))
}

/// Writes an entry whose name, id and owner have not changed.
pub(super) fn put(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), ProtectionError> {
    Ok(rows.put(ENTRY, &key(entry.id), &entry.encode())?)
}

/// Writes an entry with its indexes. No token counts for it that an earlier holder of its name had.
pub(super) fn insert(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), ProtectionError> {
    let tokens = entry.tokens.max(gone::first_tokens(rows, entry)?);
    put(rows, &Entry { tokens, ..entry.clone() })?;
    rows.put(NAME, entry.name.as_bytes(), &entry.id.0.to_be_bytes())?;
    if entry.id.is_group() {
        rows.put(OWNED, &pair(entry.owner, entry.id), &[])?;
    }
    Ok(())
}

/// Removes an entry from its table and indexes; memberships and its count stay.
pub(super) fn remove(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), ProtectionError> {
    rows.delete(ENTRY, &key(entry.id))?;
    rows.delete(NAME, entry.name.as_bytes())?;
    rows.delete(OWNED, &pair(entry.owner, entry.id))?;
    Ok(())
}

/// Number of an entry's memberships.
pub(super) fn count(rows: &(impl Rows + ?Sized), id: ViceId) -> Result<u32, ProtectionError> {
    Ok(rows.get(COUNT, &key(id))?.map(|row| number(&row)).transpose()?.unwrap_or(0))
}

/// Writes the number of an entry's memberships; zero has no row.
pub(super) fn set_count(
    rows: &mut (impl RowsMut + ?Sized),
    id: ViceId,
    count: u32,
) -> Result<(), ProtectionError> {
    match count {
        0 => rows.delete(COUNT, &key(id))?,
        _ => rows.put(COUNT, &key(id), &count.to_be_bytes())?,
    }
    Ok(())
}

/// The largest user id and the smallest group id ever assigned; `None` before the first start.
pub(super) fn max_ids(
    rows: &(impl Rows + ?Sized),
) -> Result<(Option<ViceId>, Option<ViceId>), ProtectionError> {
    let read = |key: &[u8]| -> Result<Option<ViceId>, ProtectionError> {
        let row = rows.get(META, key)?;
        Ok(row.map(|row| number(&row)).transpose()?.map(|id| ViceId(id as i32)))
    };
    Ok((read(MAX_USER)?, read(MAX_GROUP)?))
}

/// Writes one of the counters.
pub(super) fn set_max(
    rows: &mut (impl RowsMut + ?Sized),
    id: ViceId,
    group: bool,
) -> Result<(), ProtectionError> {
    Ok(rows.put(META, if group { MAX_GROUP } else { MAX_USER }, &id.0.to_be_bytes())?)
}
