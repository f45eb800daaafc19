//! Emptying a server: plan of moves for its volumes.
//!
//! The plan is computed from the location database and the space on the other servers. Each of its tasks is
//! one volume group, and consists of operations that are journaled by themselves; a task that is done is not
//! planned again, so an interrupted emptying is continued by starting it again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use afs_wire::ids::{KindNumber, PartitionId, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, Site, SiteFlags};

use super::PartitionState;
use super::{EntryFilter, MoveOptions, ReleaseOptions, RemoveOptions};
use crate::error::{AdminError, AdminResult};
use crate::{Admin, ServerPartition};

/// The server to be emptied, and the targets for its volumes.
#[derive(Clone, Debug)]
pub struct EmptyOptions {
    /// Any of its addresses.
    pub server: Ipv4Addr,
    /// Only this partition of it.
    pub partition: Option<PartitionId>,
    /// Targets; all other servers that reply if empty.
    pub to: Vec<Ipv4Addr>,
}

/// The work for one volume group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyTask {
    /// Name of the read-write volume.
    pub name: String,
    /// Its size, or that of the copy if only that is here.
    pub size_kib: i64,
    /// Move of the read-write volume: from, to.
    pub moved: Option<(ServerPartition, ServerPartition)>,
    /// Site of a read-only copy that is created first, because the last ones are here.
    pub copied: Option<ServerPartition>,
    /// Sites of read-only copies that are removed.
    pub removed: Vec<ServerPartition>,
}

/// Plan for emptying a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmptyPlan {
    /// The tasks, the largest volumes first.
    pub tasks: Vec<EmptyTask>,
    /// Volumes that cannot be moved, with the reasons.
    pub stays: Vec<(String, String)>,
    /// Volumes on the server that are not in the location database.
    pub unlisted: Vec<(VolumeId, ServerPartition)>,
}

/// The volumes of the server.
#[derive(Default)]
struct ServerVolumes {
    sizes: BTreeMap<VolumeId, i64>,
    /// Backup volumes. One with an entry of its own is a named snapshot, which moves with its volume.
    snapshots: BTreeSet<VolumeId>,
    /// Volumes that are not in the location database.
    unlisted: Vec<(VolumeId, ServerPartition)>,
}

/// Free space on the target partitions, in KiB, after the tasks planned so far.
#[derive(Clone, Debug, Default)]
struct TargetSpace(BTreeMap<ServerPartition, i64>);

impl Admin {
    /// Plans the emptying of a server. Nothing is changed.
    ///
    /// # Errors
    /// The location database or the server does not reply, or there is no target.
    pub async fn plan_empty(&self, options: &EmptyOptions) -> AdminResult<EmptyPlan> {
        let own = self.known_server(options.server).await?;
        let own = own.map_or_else(|| vec![options.server], |server| server.addresses);
        let filter = EntryFilter { server: Some(options.server), partition: None, locked: false };
        let entries = self.entries(&filter).await?;
        let here = self.here(options, &entries).await?;
        let mut space = self.space(options, &own).await?;
        let mut plan = EmptyPlan { unlisted: here.unlisted, ..EmptyPlan::default() };
        let is_here = |site: &Site| {
            own.contains(&site.server)
                && options.partition.is_none_or(|wanted| site.partition.check() == Some(wanted))
        };
        let of_snapshot = |entry: &&Entry| here.snapshots.contains(&entry.id(VolumeKind::ReadWrite));
        let groups = entries.iter().filter(|entry| !of_snapshot(entry));
        let mut sized: Vec<(i64, &Entry)> = groups.map(|e| (size_of(&here.sizes, e), e)).collect();
        sized.sort_by_key(|(size, entry)| (-size, entry.name));
        for (size_kib, entry) in sized {
            match space.plan(entry, size_kib, &is_here) {
                Ok(Some(task)) => plan.tasks.push(task),
                Ok(None) => {}
                Err(why) => plan.stays.push((entry.name.to_string(), why)),
            }
        }
        Ok(plan)
    }

    /// The volumes on the server.
    async fn here(&self, options: &EmptyOptions, entries: &[Entry]) -> AdminResult<ServerVolumes> {
        let mut here = ServerVolumes::default();
        let partitions = self.partitions(options.server).await.map_err(|error| {
            error.with_hint(
                "a server that is lost cannot be emptied: `andrew vos convertROtoRW` makes read-write volumes of copies elsewhere",
            )
        })?;
        for partition in partitions {
            if options.partition.is_some_and(|wanted| wanted != partition) {
                continue;
            }
            let place = ServerPartition::new(options.server, partition);
            for volume in self.volumes_on(place).await? {
                here.sizes.insert(volume.id, i64::from(volume.size));
                if volume.kind == KindNumber::from(VolumeKind::Backup) {
                    here.snapshots.insert(volume.id);
                }
                let group = [volume.id, volume.parent_id];
                if !entries.iter().any(|entry| entry.ids.iter().any(|id| id.0 != 0 && group.contains(id))) {
                    here.unlisted.push((volume.id, place));
                }
            }
        }
        Ok(here)
    }

    /// The space on the target servers. One that does not reply is left out, unless it was named.
    async fn space(&self, options: &EmptyOptions, own: &[Ipv4Addr]) -> AdminResult<TargetSpace> {
        let named = !options.to.is_empty();
        let servers = match named {
            true => options.to.clone(),
            false => self.servers().await?.iter().map(super::KnownServer::address).collect(),
        };
        let mut space = TargetSpace::default();
        for server in servers.into_iter().filter(|server| !own.contains(server)) {
            let partitions = match self.partitions(server).await {
                Err(error) if named => return Err(error),
                Err(error) => {
                    self.progress().warn(&format!("nothing goes to {server}: {error}"));
                    continue;
                }
                Ok(partitions) => partitions,
            };
            for partition in partitions {
                let place = ServerPartition::new(server, partition);
                match self.partition_state(place).await? {
                    PartitionState::Online(found) => drop(space.0.insert(place, found.free_kib)),
                    ill => self.progress().warn(&format!("nothing goes to {place}: it is {}", ill.word())),
                }
            }
        }
        if space.0.is_empty() {
            let doing = format!("Could not empty server {}", options.server);
            return Err(AdminError::refused(doing, "there is no other server that its volumes could go to")
                .with_hint(
                    "`andrew server list` shows the servers of the cell; add one with `andrew server add`",
                ));
        }
        Ok(space)
    }

    /// Carries out one task of a plan.
    ///
    /// # Errors
    /// Those of its operations. Completed operations stay completed.
    pub async fn empty_one(&self, task: &EmptyTask) -> AdminResult {
        if let Some(place) = task.copied {
            self.add_site(&task.name, place, false).await?;
            let volume = task.name.clone();
            self.release(ReleaseOptions { volume, force: true, back_out: false }).await?;
        }
        if let Some((from, to)) = task.moved {
            let volume = task.name.clone();
            let options = MoveOptions { volume, from: Some(from), to, live: false, drop_snapshots: false };
            self.move_volume(options).await?;
        }
        for place in &task.removed {
            let volume = format!("{}.readonly", task.name);
            self.remove(RemoveOptions { volume, place: Some(*place), snapshots: false }).await?;
        }
        Ok(())
    }
}

impl TargetSpace {
    /// The task for one group; `None` if nothing of it is here. An error message if it cannot be moved.
    fn plan(
        &mut self,
        entry: &Entry,
        size_kib: i64,
        is_here: &impl Fn(&Site) -> bool,
    ) -> Result<Option<EmptyTask>, String> {
        let of = |flag: SiteFlags| entry.sites.iter().filter(move |site| site.flags.contains(flag));
        let home = of(SiteFlags::RW_VOLUME).next();
        let copies: Vec<&Site> = of(SiteFlags::RO_VOLUME).collect();
        let removed: Vec<ServerPartition> =
            copies.iter().filter(|s| is_here(s)).map(|s| ServerPartition::from(*s)).collect();
        let moved = home.filter(|site| is_here(site)).map(ServerPartition::from);
        if moved.is_none() && removed.is_empty() {
            return Ok(None);
        }
        let elsewhere: Vec<&Site> = copies.into_iter().filter(|site| !is_here(site)).collect();
        let good = elsewhere.iter().any(|site| !site.flags.contains(SiteFlags::DONT_USE));
        let mut task =
            EmptyTask { name: entry.name.to_string(), size_kib, moved: None, copied: None, removed };
        if let Some(from) = moved {
            task.moved = Some((from, self.take(size_kib, &elsewhere)?));
        }
        if !task.removed.is_empty() && !good {
            if home.is_none() {
                return Err(
                    "its last read-only copy is here, and there is no read-write volume to copy".into()
                );
            }
            task.copied = Some(match task.moved {
                // The move brings the read-write volume to where its copy then is: a clone needs no space of
                // its own.
                Some((_, to)) if self.0.len() < 2 => to,
                _ => self.take(size_kib, &[])?,
            });
        }
        Ok(Some(task))
    }

    /// The partition with most space. A server that already has a copy takes the volume where the copy is.
    fn take(&mut self, size_kib: i64, copies: &[&Site]) -> Result<ServerPartition, String> {
        let fits_beside = |place: &ServerPartition| {
            copies.iter().all(|site| site.server != place.server || site.partition == place.partition)
        };
        let best = self.0.iter_mut().filter(|(place, _)| fits_beside(place)).max_by_key(|(_, free)| **free);
        let (place, free) = best.ok_or("the servers it could go to have a copy on another partition")?;
        if *free < size_kib {
            return Err(format!(
                "it takes {size_kib} K, and the partition with most room, {place}, has {free} K"
            ));
        }
        *free -= size_kib;
        Ok(*place)
    }
}

/// The size of the read-write volume if it is here, else of the copy.
fn size_of(sizes: &BTreeMap<VolumeId, i64>, entry: &Entry) -> i64 {
    let kinds = [VolumeKind::ReadWrite, VolumeKind::ReadOnly];
    kinds.iter().find_map(|kind| sizes.get(&entry.id(*kind)).copied()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::xdr::BoundedVec;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn place(server: u8, partition: u8) -> ServerPartition {
        ServerPartition::new(Ipv4Addr::new(10, 0, 0, server), PartitionId(partition))
    }

    fn entry(sites: &[(ServerPartition, SiteFlags)]) -> Entry {
        let sites = sites.iter().map(|(place, flags)| place.site(*flags));
        Entry { sites: BoundedVec::first_of(sites), ..Entry::default() }
    }

    fn space(all: &[(ServerPartition, i64)]) -> TargetSpace {
        TargetSpace(all.iter().copied().collect())
    }

    fn plan(
        space: &mut TargetSpace,
        size: i64,
        sites: &[(ServerPartition, SiteFlags)],
    ) -> Result<Option<EmptyTask>, String> {
        space.plan(&entry(sites), size, &|site| site.server == HERE)
    }

    #[test]
    fn volumes_go_where_there_is_most_room_until_there_is_none() {
        let mut space = space(&[(place(2, 0), 100), (place(3, 0), 150)]);
        let here = [(place(1, 0), SiteFlags::RW_VOLUME)];
        let mut to = |size| plan(&mut space, size, &here).map(|task| task.unwrap().moved.unwrap().1);
        assert_eq!(to(80), Ok(place(3, 0)));
        assert_eq!(to(80), Ok(place(2, 0)));
        assert!(to(80).unwrap_err().contains("has 70 K"));
        assert_eq!(to(70), Ok(place(3, 0)));
    }

    #[test]
    fn the_last_copy_is_made_elsewhere_before_it_goes() {
        let mut space = space(&[(place(2, 0), 100), (place(3, 0), 150)]);
        let both = [(place(1, 0), SiteFlags::RW_VOLUME), (place(1, 0), SiteFlags::RO_VOLUME)];
        let task = plan(&mut space, 60, &both).unwrap().unwrap();
        assert_eq!(task.moved, Some((place(1, 0), place(3, 0))));
        assert_eq!((task.copied, task.removed), (Some(place(2, 0)), vec![place(1, 0)]));
        let copied = [both[0], both[1], (place(2, 0), SiteFlags::RO_VOLUME)];
        assert_eq!(plan(&mut space, 10, &copied).unwrap().unwrap().copied, None);
        let alone = plan(&mut space, 10, &both[1..]).unwrap_err();
        assert!(alone.contains("last read-only copy"), "{alone}");
        assert_eq!(plan(&mut space, 10, &copied[2..]), Ok(None));
    }

    #[test]
    fn a_volume_comes_to_the_partition_of_its_copy() {
        let mut space = space(&[(place(2, 0), 100), (place(2, 1), 500)]);
        let sites = [(place(1, 0), SiteFlags::RW_VOLUME), (place(2, 0), SiteFlags::RO_VOLUME)];
        assert_eq!(plan(&mut space, 50, &sites).unwrap().unwrap().moved.unwrap().1, place(2, 0));
    }
}
