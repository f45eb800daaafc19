//! Conversion between wire types and database records of the location service.

use std::net::Ipv4Addr;

use afs_db::{
    EntryKey, EntryUpdate, Located, Proposal, ProposedSite, Refusal, Release, SiteChange, SiteUpdate,
};
use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, VolumeId, VolumeKind};
use afs_wire::vl::{self, NameChars, site_update};
use afs_wire::xdr::BoundedVec;

/// An entry with servers named by one address each.
pub(super) fn entry(located: &Located, match_index: u32) -> vl::Entry {
    let stored = &located.entry;
    let sites = stored.sites.iter().zip(&located.servers).map(|(site, server)| vl::Site {
        server: server.first_address(),
        partition: site.partition.into(),
        flags: vl::SiteFlags(site.flags.into()),
    });
    vl::Entry {
        name: NameChars::truncated(stored.name.as_bytes()),
        sites: BoundedVec::first_of(sites),
        ids: stored.ids,
        clone_id: stored.clone,
        flags: vl::EntryFlags(stored.flags),
        match_index: match_index as i32,
    }
}

/// An entry with servers given by their UUIDs, where they have registered.
pub(super) fn uuid_entry(located: &Located) -> vl::UuidEntry {
    let stored = &located.entry;
    let sites = stored.sites.iter().zip(&located.servers).map(|(site, server)| {
        let flags = vl::SiteFlags(site.flags.into());
        vl::UuidSite {
            server: server.uuid.unwrap_or_else(|| vl::UuidSite::uuid_of_address(server.first_address())),
            unique: if server.uuid.is_some() { server.uniquifier } else { 0 },
            partition: site.partition.into(),
            flags: if server.uuid.is_some() { flags.with(vl::SiteFlags::UUID) } else { flags },
        }
    });
    vl::UuidEntry {
        name: NameChars::truncated(stored.name.as_bytes()),
        sites: BoundedVec::first_of(sites),
        ids: stored.ids,
        clone_id: stored.clone,
        flags: vl::EntryFlags(stored.flags),
        match_index: 0,
    }
}

/// The entry that a tool proposes. A name that is not UTF-8 is no volume name either.
pub(super) fn proposal(entry: &vl::Entry) -> Result<Proposal, AbortCode> {
    Ok(Proposal {
        name: chars(&entry.name)?,
        ids: entry.ids,
        clone: entry.clone_id,
        flags: entry.flags.0,
        sites: entry.sites.iter().map(proposed_site).collect(),
    })
}

fn proposed_site(site: &vl::Site) -> ProposedSite {
    ProposedSite { address: site.server, partition: site.partition.0, flags: site.flags.0 as i32 }
}

pub(super) fn update(update: &vl::EntryUpdate) -> Result<EntryUpdate, AbortCode> {
    Ok(EntryUpdate {
        name: update.name.as_ref().map(chars).transpose()?,
        ids: [update.read_write_id, update.read_only_id, update.backup_id],
        clone: update.clone_id,
        flags: update.flags.map(|flags| flags.0),
        sites: update.sites.iter().filter_map(site_change).collect(),
    })
}

fn site_change(site: &vl::SiteUpdate) -> Option<SiteUpdate> {
    let has = |bit: u32| site.mask & bit != 0;
    let at = |address: Ipv4Addr, partition: i32, change| Some(SiteUpdate { address, partition, change });
    let (target, target_partition) = (site.target_server, site.target_partition.0);
    let flags = site.new_flags.0 as i32;
    if has(site_update::DELETE) {
        at(target, target_partition, SiteChange::Delete)
    } else if has(site_update::ADD) {
        at(site.new_server, site.new_partition.0, SiteChange::Add { flags })
    } else if has(site_update::SERVER | site_update::PARTITION | site_update::FLAGS) {
        let change = SiteChange::Change {
            address: has(site_update::SERVER).then_some(site.new_server),
            partition: has(site_update::PARTITION).then_some(site.new_partition.0),
            flags: has(site_update::FLAGS).then_some(flags),
        };
        at(target, target_partition, change)
    } else {
        None
    }
}

pub(super) fn kind(number: KindNumber) -> Result<Option<VolumeKind>, AbortCode> {
    afs_db::kind_selector(number).map_err(refused)
}

pub(super) fn release(release: vl::ReleaseType) -> Result<Release, AbortCode> {
    Release::from_wire(release.0 as i32).map_err(refused)
}

pub(super) fn by_id(volume: VolumeId, number: KindNumber) -> Result<EntryKey, AbortCode> {
    Ok(EntryKey::Id(volume, kind(number)?))
}

pub(super) fn by_name(name: &[u8]) -> Result<EntryKey, AbortCode> {
    text(name).map(EntryKey::Name)
}

pub(super) fn text(name: &[u8]) -> Result<String, AbortCode> {
    String::from_utf8(name.to_vec()).map_err(|_| AbortCode::VL_BADNAME)
}

pub(super) fn refused(refusal: Refusal) -> AbortCode {
    AbortCode(refusal.code())
}

fn chars(name: &NameChars) -> Result<String, AbortCode> {
    text(name.text())
}
