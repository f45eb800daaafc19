//! Change of single fields of a location entry.

use std::net::Ipv4Addr;

use afs_wire::ids::{PartitionId, VolumeId};

use super::entry::check_name;
use super::{entries, servers};
use crate::{Entry, LocationError, ProposedSite, Refusal, Release, RowsMut, ServerSlot};

/// Sites that fit into the structure of an update (docs/protocol vldb.md "2. Structures").
const UPDATED_SITES_MAX: usize = 8;

/// The fields to change; `None` leaves one unchanged.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EntryUpdate {
    /// The name.
    pub name: Option<String>,
    /// The ids, by `VolumeKind::index`.
    pub ids: [Option<VolumeId>; 3],
    /// The temporary clone.
    pub clone: Option<VolumeId>,
    /// The flags.
    pub flags: Option<u32>,
    /// Changes of sites, made one after the other.
    pub sites: Vec<SiteUpdate>,
}

/// A change of the site at one server and partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SiteUpdate {
    /// Any address of the site's server.
    pub address: Ipv4Addr,
    /// The site's partition, unchecked.
    pub partition: i32,
    /// The change.
    pub change: SiteChange,
}

/// A change of one site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SiteChange {
    /// Remove it.
    Delete,
    /// Add a site with these flags.
    Add {
        /// Site flags, unchecked.
        flags: i32,
    },
    /// Change the given fields.
    Change {
        /// The server.
        address: Option<Ipv4Addr>,
        /// The partition, unchecked.
        partition: Option<i32>,
        /// Site flags, unchecked.
        flags: Option<i32>,
    },
}

/// Applies an update to an entry (docs/protocol vldb.md "4. Semantics", UpdateEntry).
pub(crate) fn update(
    rows: &mut (impl RowsMut + ?Sized),
    (row, old): entries::Found,
    update: &EntryUpdate,
    release: Release,
) -> Result<(), LocationError> {
    let mut new = old.clone();
    if let Some(name) = update.name.as_ref().filter(|name| **name != old.name) {
        check_name(name)?;
        entries::check_name_free(rows, name)?;
        new.name.clone_from(name);
    }
    for (own, id) in new.ids.iter_mut().zip(update.ids) {
        if let Some(id) = id {
            entries::check_ids_free(rows, &[id], &old.ids)?;
            *own = id;
        }
    }
    new.clone = update.clone.unwrap_or(old.clone);
    new.flags = update.flags.unwrap_or(old.flags);
    for site in &update.sites {
        update_site(rows, &mut new, site)?;
    }
    if new.ids.iter().any(|id| id.0 != 0 && new.ids.iter().filter(|other| *other == id).count() > 1) {
        return Err(Refusal::IdExists.into());
    }
    release.apply(&mut new);
    entries::write(rows, row, Some(&old), &new)
}

fn update_site(
    rows: &mut (impl RowsMut + ?Sized),
    entry: &mut Entry,
    site: &SiteUpdate,
) -> Result<(), LocationError> {
    let partition = entries::check_partition(site.partition)?;
    let slot = servers::slot_of(rows, site.address)?;
    let place = slot.and_then(|slot| place(entry, slot, partition));
    match &site.change {
        SiteChange::Delete => {
            entry.sites.remove(place.ok_or(Refusal::NoSuchSite)?);
        }
        SiteChange::Add { flags } => {
            if place.is_some() {
                return Err(Refusal::DuplicateSite.into());
            }
            if entry.sites.len() >= UPDATED_SITES_MAX {
                return Err(Refusal::SitesFull.into());
            }
            let proposed = ProposedSite { address: site.address, partition: site.partition, flags: *flags };
            entry.sites.push(entries::resolve_site(rows, &proposed)?);
        }
        SiteChange::Change { address, partition, flags } => {
            let place = place.ok_or(Refusal::NoSuchSite)?;
            let mut changed = entry.sites[place];
            if let Some(address) = address {
                changed.server = servers::find_or_add(rows, *address)?;
            }
            if let Some(partition) = partition {
                changed.partition = entries::check_partition(*partition)?;
            }
            if let Some(flags) = flags {
                changed.flags = entries::check_site_flags(*flags)? & !crate::site_flags::UUID;
            }
            entry.sites[place] = changed;
        }
    }
    Ok(())
}

fn place(entry: &Entry, server: ServerSlot, partition: PartitionId) -> Option<usize> {
    entry.sites.iter().position(|site| site.server == server && site.partition == partition)
}
