//! Volume groups as in the location database, and choices based on that alone.

use std::net::Ipv4Addr;

use afs_wire::ids::{Uuid, VolumeId, VolumeKind};
use afs_wire::mountpoint::Choice;
use afs_wire::vl::{Entry, EntryFlags, SiteFlags, UuidEntry};

/// Name of a site's server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum ServerName {
    /// UUID, and the version of its address list.
    Uuid(Uuid, u32),
    /// The only address of a server that never registered.
    Address(Ipv4Addr),
}

/// A site of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupSite {
    pub server: ServerName,
    pub flags: SiteFlags,
}

/// The volumes of one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// The name of the read-write volume.
    pub name: String,
    pub ids: [VolumeId; 3],
    pub flags: EntryFlags,
    pub sites: Vec<GroupSite>,
}

impl From<UuidEntry> for Group {
    fn from(entry: UuidEntry) -> Self {
        let site = |site: &afs_wire::vl::UuidSite| GroupSite {
            server: match site.plain_address() {
                Some(address) => ServerName::Address(address),
                None => ServerName::Uuid(site.server, site.unique),
            },
            flags: site.flags,
        };
        Group {
            name: String::from_utf8_lossy(entry.name.text()).into_owned(),
            ids: entry.ids,
            flags: entry.flags,
            sites: entry.sites.iter().map(site).collect(),
        }
    }
}

impl From<Entry> for Group {
    fn from(entry: Entry) -> Self {
        let site = |site: &afs_wire::vl::Site| GroupSite {
            server: ServerName::Address(site.server),
            flags: site.flags,
        };
        Group {
            name: String::from_utf8_lossy(entry.name.text()).into_owned(),
            ids: entry.ids,
            flags: entry.flags,
            sites: entry.sites.iter().map(site).collect(),
        }
    }
}

impl Group {
    /// The volume of this kind, if the entry says that it exists.
    pub fn volume(&self, kind: VolumeKind) -> Option<VolumeId> {
        let exists = match kind {
            VolumeKind::ReadWrite => EntryFlags::RW_EXISTS,
            VolumeKind::ReadOnly => EntryFlags::RO_EXISTS,
            VolumeKind::Backup => EntryFlags::BACK_EXISTS,
        };
        let id = kind.of(self.ids);
        (self.flags.contains(exists) && id.0 != 0).then_some(id)
    }

    /// The kind of a volume number of this group.
    pub fn kind_of(&self, id: VolumeId) -> Option<VolumeKind> {
        VolumeKind::ALL.into_iter().find(|kind| self.ids.get(kind.index()) == Some(&id) && id.0 != 0)
    }

    /// Servers at which a volume of this kind can be used now.
    ///
    /// A backup volume is at the site of the read-write one. Read-only sites that were never released to are left out;
    /// during a release only sites that have the new release already are used (docs/protocol/client.md "4. Choosing
    /// servers", docs/protocol/vldb.md "2.1 Flags").
    pub fn sites_of(&self, kind: VolumeKind) -> Vec<ServerName> {
        let wanted = match kind {
            VolumeKind::ReadOnly => SiteFlags::RO_VOLUME,
            VolumeKind::ReadWrite | VolumeKind::Backup => SiteFlags::RW_VOLUME,
        };
        let usable: Vec<_> = self
            .sites
            .iter()
            .filter(|site| site.flags.contains(wanted) && !site.flags.contains(SiteFlags::DONT_USE))
            .collect();
        let new = |site: &&&GroupSite| site.flags.contains(SiteFlags::NEW_REPSITE);
        let only_new = kind == VolumeKind::ReadOnly && usable.iter().any(|site| new(&site));
        usable.iter().filter(|site| !only_new || new(site)).map(|site| site.server).collect()
    }
}

impl Group {
    /// The volume to which a mount point leads; `number` is the one that it names, if any.
    pub fn choose(&self, choice: Choice, number: Option<VolumeId>) -> Option<(VolumeId, VolumeKind)> {
        let get = |kind| self.volume(kind).map(|id| (id, kind));
        match choice {
            Choice::Exactly(kind) => get(kind),
            Choice::ReadOnlyIfAny => get(VolumeKind::ReadOnly).or_else(|| get(VolumeKind::ReadWrite)),
            Choice::AsNumbered => number.and_then(|id| self.kind_of(id).map(|kind| (id, kind))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RO: SiteFlags = SiteFlags::RO_VOLUME;

    fn group(flags: EntryFlags, sites: &[SiteFlags]) -> Group {
        let site = |(n, &flags): (usize, &SiteFlags)| GroupSite {
            server: ServerName::Address(Ipv4Addr::new(10, 0, 0, n as u8)),
            flags,
        };
        Group {
            name: "proj".into(),
            ids: [VolumeId(10), VolumeId(11), VolumeId(12)],
            flags,
            sites: sites.iter().enumerate().map(site).collect(),
        }
    }

    fn numbers(group: &Group, kind: VolumeKind) -> Vec<u8> {
        let number = |name: &ServerName| match name {
            ServerName::Address(address) => address.octets()[3],
            ServerName::Uuid(..) => 255,
        };
        group.sites_of(kind).iter().map(number).collect()
    }

    #[test]
    fn sites_not_released_to_are_skipped() {
        let flags = EntryFlags::RW_EXISTS | EntryFlags::RO_EXISTS;
        let idle = group(flags, &[SiteFlags::RW_VOLUME, RO, RO | SiteFlags::DONT_USE, RO]);
        assert_eq!(numbers(&idle, VolumeKind::ReadWrite), [0]);
        assert_eq!(numbers(&idle, VolumeKind::Backup), [0]);
        assert_eq!(numbers(&idle, VolumeKind::ReadOnly), [1, 3]);
        let releasing = group(flags, &[SiteFlags::RW_VOLUME, RO, RO | SiteFlags::NEW_REPSITE]);
        assert_eq!(numbers(&releasing, VolumeKind::ReadOnly), [2]);
    }

    #[test]
    fn the_volume_entered_follows_the_choice() {
        let both = group(EntryFlags::RW_EXISTS | EntryFlags::RO_EXISTS, &[]);
        let only_rw = group(EntryFlags::RW_EXISTS, &[]);
        let enter = |group: &Group, choice, number: Option<u32>| {
            group.choose(choice, number.map(VolumeId)).map(|(id, _)| id.0)
        };
        assert_eq!(enter(&both, Choice::Exactly(VolumeKind::ReadWrite), None), Some(10));
        assert_eq!(enter(&both, Choice::ReadOnlyIfAny, None), Some(11));
        assert_eq!(enter(&only_rw, Choice::ReadOnlyIfAny, None), Some(10));
        assert_eq!(enter(&only_rw, Choice::Exactly(VolumeKind::ReadOnly), None), None);
        assert_eq!(enter(&both, Choice::AsNumbered, Some(12)), Some(12));
        assert_eq!(enter(&both, Choice::AsNumbered, Some(99)), None);
    }
}
