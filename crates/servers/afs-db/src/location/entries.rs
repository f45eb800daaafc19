//! Location entries: look-up, creation, replacement, deletion, and their indexes.

use afs_wire::ids::{PartitionId, UnixSeconds, VolumeId, VolumeKind};

use super::entry::{base_name, check_name};
use super::servers;
use crate::rows::{ENTRY, META, NAME, SITE, VOLUME, number};
use crate::{
    Entry, Located, LocationError, Proposal, ProposedSite, Refusal, Release, Rows, RowsMut, SITES_MAX, Site,
};

/// The key of the counter of entry rows.
const NEXT_ROW: &[u8] = b"next-row";
/// The key of the count of entries.
const COUNT: &[u8] = b"entries";

/// An entry and its row number.
pub(crate) type Found = (u32, Entry);

/// The entry with a volume id, of one kind or of any.
pub(crate) fn by_id(
    rows: &(impl Rows + ?Sized),
    id: VolumeId,
    kind: Option<VolumeKind>,
) -> Result<Found, LocationError> {
    let row = row_of_volume(rows, id)?.ok_or(Refusal::NoEntry)?;
    let entry = at(rows, row)?.ok_or(Refusal::Damaged)?;
    if !entry.has(id, kind) {
        return Err(Refusal::NoEntry.into());
    }
    Ok((row, entry))
}

/// The entry with a name as clients give it: with or without suffix, or a decimal volume id (docs/protocol
/// vldb.md "4. Semantics", Names).
pub(crate) fn by_name(rows: &(impl Rows + ?Sized), name: &str) -> Result<Found, LocationError> {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        let id = name.parse().map_err(|_| Refusal::NoEntry)?;
        return by_id(rows, VolumeId(id), None);
    }
    let base = base_name(name);
    check_name(base)?;
    let row = row_of_name(rows, base)?.ok_or(Refusal::NoEntry)?;
    Ok((row, at(rows, row)?.ok_or(Refusal::Damaged)?))
}

/// The entry in a row.
pub(crate) fn at(rows: &(impl Rows + ?Sized), row: u32) -> Result<Option<Entry>, LocationError> {
    rows.get(ENTRY, &row.to_be_bytes())?.map(|value| Entry::decode(&value)).transpose()
}

/// Adds the servers of the entry's sites.
pub(crate) fn locate(rows: &(impl Rows + ?Sized), (row, entry): Found) -> Result<Located, LocationError> {
    let servers = entry
        .sites
        .iter()
        .map(|site| servers::by_slot(rows, site.server)?.ok_or_else(|| Refusal::Damaged.into()))
        .collect::<Result<_, LocationError>>()?;
    Ok(Located { row, entry, servers })
}

/// Number of entries.
pub(crate) fn count(rows: &(impl Rows + ?Sized)) -> Result<u32, LocationError> {
    rows.get(META, COUNT)?.map_or(Ok(0), |value| number(&value))
}

/// Creates an entry (docs/protocol vldb.md "4. Semantics", CreateEntry).
pub(crate) fn create(rows: &mut (impl RowsMut + ?Sized), proposal: &Proposal) -> Result<(), LocationError> {
    check(proposal)?;
    check_ids_free(rows, &proposal.ids, &[])?;
    check_name_free(rows, &proposal.name)?;
    let entry = resolve(rows, proposal, UnixSeconds(0))?;
    append(rows, &entry)
}

/// Writes a checked entry into a new row, after all others.
pub(crate) fn append(rows: &mut (impl RowsMut + ?Sized), entry: &Entry) -> Result<(), LocationError> {
    let row = rows.get(META, NEXT_ROW)?.map_or(Ok(1), |value| number(&value))?;
    // Row numbers travel as signed numbers in list indexes.
    if row >= i32::MAX as u32 {
        return Err(Refusal::SizeExceeded.into());
    }
    rows.put(META, NEXT_ROW, &(row + 1).to_be_bytes())?;
    let count = count(rows)?;
    rows.put(META, COUNT, &(count + 1).to_be_bytes())?;
    write(rows, row, None, entry)
}

/// Replaces a whole entry, with its flags, then releases its lock as requested (docs/protocol vldb.md "4.
/// Semantics", ReplaceEntry).
pub(crate) fn replace(
    rows: &mut (impl RowsMut + ?Sized),
    id: VolumeId,
    kind: Option<VolumeKind>,
    proposal: &Proposal,
    release: Release,
) -> Result<(), LocationError> {
    let (row, old) = by_id(rows, id, kind)?;
    check(proposal)?;
    if proposal.ids[0] != old.ids[0] {
        return Err(Refusal::BadEntry.into());
    }
    check_ids_free(rows, &proposal.ids, &old.ids)?;
    if proposal.name != old.name {
        check_name_free(rows, &proposal.name)?;
    }
    let mut entry = resolve(rows, proposal, old.locked)?;
    release.apply(&mut entry);
    write(rows, row, Some(&old), &entry)
}

/// Exchanges the names of two entries.
pub(crate) fn exchange_names(
    rows: &mut (impl RowsMut + ?Sized),
    one: VolumeId,
    other: VolumeId,
) -> Result<(), LocationError> {
    let ((row, old), (other_row, other_old)) = (by_id(rows, one, None)?, by_id(rows, other, None)?);
    // Each name is in the index of the other entry's row before that one is written.
    unindex(rows, row, &old)?;
    unindex(rows, other_row, &other_old)?;
    let with = |entry: &Entry, name: &str| Entry { name: name.to_owned(), ..entry.clone() };
    write(rows, row, None, &with(&old, &other_old.name))?;
    if row == other_row {
        return Ok(());
    }
    write(rows, other_row, None, &with(&other_old, &old.name))
}

/// Deletes an entry.
pub(crate) fn delete(
    rows: &mut (impl RowsMut + ?Sized),
    id: VolumeId,
    kind: Option<VolumeKind>,
) -> Result<(), LocationError> {
    let (row, entry) = by_id(rows, id, kind)?;
    unindex(rows, row, &entry)?;
    let count = count(rows)?;
    rows.put(META, COUNT, &count.saturating_sub(1).to_be_bytes())?;
    rows.delete(ENTRY, &row.to_be_bytes())
}

/// Replaces a stored entry and updates the indexes.
pub(crate) fn write(
    rows: &mut (impl RowsMut + ?Sized),
    row: u32,
    old: Option<&Entry>,
    new: &Entry,
) -> Result<(), LocationError> {
    if let Some(old) = old {
        unindex(rows, row, old)?;
    }
    let value = row.to_be_bytes();
    rows.put(NAME, new.name.as_bytes(), &value)?;
    for id in new.ids.iter().filter(|id| id.0 != 0) {
        rows.put(VOLUME, &id.0.to_be_bytes(), &value)?;
    }
    for site in &new.sites {
        rows.put(SITE, &site_key(site, row), &[])?;
    }
    rows.put(ENTRY, &value, &new.encode())
}

fn unindex(rows: &mut (impl RowsMut + ?Sized), row: u32, entry: &Entry) -> Result<(), LocationError> {
    rows.delete(NAME, entry.name.as_bytes())?;
    for id in entry.ids.iter().filter(|id| id.0 != 0) {
        rows.delete(VOLUME, &id.0.to_be_bytes())?;
    }
    for site in &entry.sites {
        rows.delete(SITE, &site_key(site, row))?;
    }
    Ok(())
}

fn site_key(site: &Site, row: u32) -> [u8; 5] {
    let row = row.to_be_bytes();
    [site.server.0, row[0], row[1], row[2], row[3]]
}

/// Checks of a proposal that do not need the database, in the order of the codes' precedence.
fn check(proposal: &Proposal) -> Result<(), Refusal> {
    check_name(&proposal.name)?;
    if proposal.sites.is_empty() || proposal.sites.len() > SITES_MAX {
        return Err(Refusal::BadServer);
    }
    for site in &proposal.sites {
        check_partition(site.partition)?;
    }
    for site in &proposal.sites {
        check_site_flags(site.flags)?;
    }
    let [rw, ro, backup] = proposal.ids;
    let twice = |a: VolumeId, b: VolumeId| a.0 != 0 && a == b;
    // A stand-alone read-only copy has the id of its read-write volume as well (`vos copy -readonly`).
    if twice(rw, backup) || twice(ro, backup) {
        return Err(Refusal::IdExists);
    }
    Ok(())
}

pub(crate) fn check_partition(partition: i32) -> Result<PartitionId, Refusal> {
    u8::try_from(partition).map(PartitionId).map_err(|_| Refusal::BadPartition)
}

pub(crate) fn check_site_flags(flags: i32) -> Result<u8, Refusal> {
    u8::try_from(flags).ok().filter(|flags| *flags <= 0x80).ok_or(Refusal::BadSiteFlag)
}

/// Turns a checked proposal into an entry. Unknown servers are added to the table.
fn resolve(
    rows: &mut (impl RowsMut + ?Sized),
    proposal: &Proposal,
    locked: UnixSeconds,
) -> Result<Entry, LocationError> {
    let mut sites = Vec::with_capacity(proposal.sites.len());
    for site in &proposal.sites {
        sites.push(resolve_site(rows, site)?);
    }
    Ok(Entry {
        name: proposal.name.clone(),
        ids: proposal.ids,
        clone: proposal.clone,
        flags: proposal.flags,
        locked,
        sites,
    })
}

pub(crate) fn resolve_site(
    rows: &mut (impl RowsMut + ?Sized),
    site: &ProposedSite,
) -> Result<Site, LocationError> {
    let partition = check_partition(site.partition)?;
    // The flag for a registered server is set in replies only.
    let flags = check_site_flags(site.flags)? & !crate::site_flags::UUID;
    Ok(Site { server: servers::find_or_add(rows, site.address)?, partition, flags })
}

pub(crate) fn check_name_free(rows: &(impl Rows + ?Sized), name: &str) -> Result<(), LocationError> {
    match row_of_name(rows, name)? {
        Some(_) => Err(Refusal::NameExists.into()),
        None => Ok(()),
    }
}

/// Checks that ids other than the entry's `own` belong to no entry, of whatever kind.
pub(crate) fn check_ids_free(
    rows: &(impl Rows + ?Sized),
    ids: &[VolumeId],
    own: &[VolumeId],
) -> Result<(), LocationError> {
    for id in ids.iter().filter(|id| id.0 != 0 && !own.contains(id)) {
        if row_of_volume(rows, *id)?.is_some() {
            return Err(Refusal::IdExists.into());
        }
    }
    Ok(())
}

fn row_of_volume(rows: &(impl Rows + ?Sized), id: VolumeId) -> Result<Option<u32>, LocationError> {
    rows.get(VOLUME, &id.0.to_be_bytes())?.map(|value| number(&value)).transpose()
}

fn row_of_name(rows: &(impl Rows + ?Sized), name: &str) -> Result<Option<u32>, LocationError> {
    rows.get(NAME, name.as_bytes())?.map(|value| number(&value)).transpose()
}
