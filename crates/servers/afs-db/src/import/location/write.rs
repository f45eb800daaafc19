//! Import of the content of a `vldb.DB0` into a location database, part by part.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use afs_wire::ids::VolumeId;

use crate::import::{MARK, Merged};
use crate::location::{entries, servers, volume_ids};
use crate::rows::{META, NAME, VOLUME, number};
use crate::{Entry, LocationError, Refusal, Rows, RowsMut, SITES_MAX, Server, ServerSlot};

/// A part of an import: one transaction. Every part has all servers, so that each is self-contained.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Part {
    /// The servers.
    pub servers: Vec<Server>,
    /// Entries whose sites refer to slots of `servers`. At most as many as the database takes at once.
    pub entries: Vec<Entry>,
    /// The counter of volume ids, which never decreases.
    pub next_volume_id: VolumeId,
    /// The first part requires a database without entries, unless it is to be merged, or an earlier import
    /// was not finished.
    pub first: bool,
    /// The last part marks the import as finished.
    pub last: bool,
    /// Whether the database may have entries. Equal ones stay, others are conflicts.
    pub merge: bool,
    /// As `merge`, but entries that contradict the file are replaced.
    pub replace: bool,
}

/// The changes to be written.
struct Plan {
    /// Servers after the import, with those they replace.
    servers: Vec<(Option<Server>, Server)>,
    /// Entries to be removed, by row.
    removed: BTreeMap<u32, Entry>,
    entries: Vec<Entry>,
    merged: Merged,
}

/// Whether an import was started and not finished.
pub(crate) fn is_unfinished(rows: &(impl Rows + ?Sized)) -> Result<bool, LocationError> {
    Ok(rows.get(META, MARK)?.is_some())
}

/// Reports the effect of a part.
pub(crate) fn check(rows: &(impl Rows + ?Sized), part: &Part) -> Result<Merged, LocationError> {
    plan(rows, part).map(|plan| plan.merged)
}

/// Writes a part, unless there are conflicts.
pub(crate) fn write(rows: &mut (impl RowsMut + ?Sized), part: &Part) -> Result<Merged, LocationError> {
    let plan = plan(rows, part)?;
    if !plan.merged.conflicts.is_empty() {
        return Ok(plan.merged);
    }
    for (old, new) in &plan.servers {
        servers::write(rows, old.as_ref(), new)?;
    }
    for entry in plan.removed.values() {
        if let Some(id) = entry.ids.iter().find(|id| id.0 != 0) {
            entries::delete(rows, *id, None)?;
        }
    }
    for entry in &plan.entries {
        entries::append(rows, entry)?;
    }
    volume_ids::raise(rows, part.next_volume_id)?;
    match part.last {
        true => rows.delete(META, MARK)?,
        false => rows.put(META, MARK, &[1])?,
    }
    Ok(plan.merged)
}

fn plan(rows: &(impl Rows + ?Sized), part: &Part) -> Result<Plan, LocationError> {
    let (removed, merged) = (BTreeMap::new(), Merged::default());
    let mut plan = Plan { servers: Vec::new(), removed, entries: Vec::new(), merged };
    let there = entries::count(rows)?;
    if part.first && !(part.merge || part.replace) && there > 0 && !is_unfinished(rows)? {
        plan.merged.conflict(format!("the location database has {there} entries already"));
        return Ok(plan);
    }
    let slots = plan.place_servers(rows, part)?;
    for entry in &part.entries {
        plan.place_entry(rows, entry, &slots, part.replace)?;
    }
    Ok(plan)
}

impl Plan {
    /// Assigns slots to the servers of a part.
    fn place_servers(
        &mut self,
        rows: &(impl Rows + ?Sized),
        part: &Part,
    ) -> Result<BTreeMap<ServerSlot, ServerSlot>, LocationError> {
        let mut slots = BTreeMap::new();
        let mut taken: Vec<ServerSlot> = servers::all(rows)?.iter().map(|server| server.slot).collect();
        for server in &part.servers {
            let known = known(rows, server)?;
            let slot = match known.as_slice() {
                [] => {
                    let free = (1..=crate::SERVERS_MAX).map(ServerSlot).find(|slot| !taken.contains(slot));
                    let own = Some(server.slot).filter(|slot| !taken.contains(slot));
                    let slot = own.or(free).ok_or(Refusal::BadServer)?;
                    self.merged.servers += 1;
                    self.servers.push((None, Server { slot, ..server.clone() }));
                    slot
                }
                [one] => self.same_server(one, server),
                _ => {
                    self.merged
                        .conflict(format!("server {} is several servers here", server.first_address()));
                    continue;
                }
            };
            taken.push(slot);
            slots.insert(server.slot, slot);
        }
        Ok(slots)
    }

    /// Merges a server that is known here: its own registration is newer than any file.
    fn same_server(&mut self, known: &Server, server: &Server) -> ServerSlot {
        if known.uuid.is_some() && server.uuid.is_some() && known.uuid != server.uuid {
            let text = format!("server {} is registered under another UUID here", server.first_address());
            self.merged.conflict(text);
        } else if known.uuid.is_none() && server.uuid.is_some() {
            self.servers.push((Some(known.clone()), Server { slot: known.slot, ..server.clone() }));
        }
        known.slot
    }

    fn place_entry(
        &mut self,
        rows: &(impl Rows + ?Sized),
        entry: &Entry,
        slots: &BTreeMap<ServerSlot, ServerSlot>,
        replace: bool,
    ) -> Result<(), LocationError> {
        let mut entry = entry.clone();
        for site in &mut entry.sites {
            let Some(slot) = slots.get(&site.server) else {
                self.merged
                    .conflict(format!("entry {} has a site at a server that cannot be told", entry.name));
                return Ok(());
            };
            site.server = *slot;
        }
        let others = others(rows, &entry)?;
        if others.is_empty() || (replace && !others.values().eq([&entry])) {
            if entry.sites.is_empty() || entry.sites.len() > SITES_MAX {
                return Err(Refusal::BadServer.into());
            }
            self.merged.added += 1;
            self.merged.replaced +=
                others.keys().filter(|row| !self.removed.contains_key(row)).count() as u64;
            self.removed.extend(others);
            self.entries.push(entry);
        } else if others.values().eq([&entry]) {
            self.merged.there += 1;
        } else {
            let names: Vec<&str> = others.values().map(|other| other.name.as_str()).collect();
            let (name, ids) = (&entry.name, entry.ids.map(|id| id.0));
            let text =
                format!("entry {name} {ids:?} is another here, or has ids of another: {}", names.join(", "));
            self.merged.conflict(text);
        }
        Ok(())
    }
}

/// The known servers that match a server, by UUID or by an address.
fn known(rows: &(impl Rows + ?Sized), server: &Server) -> Result<Vec<Server>, LocationError> {
    if let Some(uuid) = server.uuid
        && let Some(known) = servers::by_uuid(rows, uuid)?
    {
        return Ok(vec![known]);
    }
    let mut found: BTreeMap<ServerSlot, Server> = BTreeMap::new();
    for address in &server.addresses {
        let address: Ipv4Addr = *address;
        found.extend(servers::by_address(rows, address)?.map(|server| (server.slot, server)));
    }
    Ok(found.into_values().collect())
}

/// The existing entries, by row, with the name or one of the ids of an entry.
fn others(rows: &(impl Rows + ?Sized), entry: &Entry) -> Result<BTreeMap<u32, Entry>, LocationError> {
    let mut found = BTreeMap::new();
    let ids = entry.ids.iter().filter(|id| id.0 != 0).map(|id| (VOLUME, id.0.to_be_bytes().to_vec()));
    for (table, key) in ids.chain([(NAME, entry.name.clone().into_bytes())]) {
        if let Some(row) = rows.get(table, &key)? {
            let row = number(&row)?;
            found.insert(row, entries::at(rows, row)?.ok_or(Refusal::Damaged)?);
        }
    }
    Ok(found)
}
