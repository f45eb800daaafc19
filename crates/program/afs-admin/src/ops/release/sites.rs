//! Transfer of the clone to the sites: concurrent, with one call for those that need the same.

use std::collections::BTreeMap;

use afs_rpc::CallError;
use afs_rpc::future::join_all;
use afs_wire::error::AbortCode;
use afs_wire::ids::{UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vl::{Entry, EntryFlags, ReleaseType, Site, SiteFlags};
use afs_wire::vol::{AttachFlags, ForwardMultiple, HeaderStatus, Replica, VolumeFlags, VolumeInfo};
use afs_wire::xdr::BoundedVec;

use super::{EditSites, ReleasePlan, Scope, UpdatedSites};
use crate::calls::{Attach, Transaction, UNPUBLISHED, cookie};
use crate::error::{AdminError, AdminResult};
use crate::ops::move_::adjusted;
use crate::{Admin, ServerPartition};

/// A site ready to receive.
struct ReceivingSite {
    held: Transaction,
    since: UnixSeconds,
}

impl ReleasePlan {
    /// Returns the sites that have it now, and the first error at others.
    pub(super) async fn send_to_sites(
        &self,
        admin: &Admin,
        entry: &mut Entry,
        scope: Scope,
    ) -> AdminResult<UpdatedSites> {
        let needs = |s: &&Site| {
            let at_home = ServerPartition::from(*s) == self.home;
            let lacks = match scope {
                Scope::NewSites => s.flags.contains(SiteFlags::DONT_USE),
                Scope::Everything | Scope::Unreached => !s.flags.contains(SiteFlags::NEW_REPSITE),
            };
            s.flags.contains(SiteFlags::RO_VOLUME) && lacks && !at_home
        };
        let sites: Vec<Site> = entry.sites.iter().filter(needs).copied().collect();
        let at_home =
            entry.sites.iter().map(ServerPartition::from).filter(|p| !self.temporary && *p == self.home);
        let mut reached: Vec<ServerPartition> = at_home.take(1).collect();
        let mut failed = None;
        if sites.is_empty() {
            return Ok((reached, failed));
        }
        let source = admin.free_volume_at(self.home, self.volume).await?;
        let clone = admin.take_existing(self.home, self.read_only, Attach::BUSY.breaking(true)).await?;
        let sent = async {
            for batch in self.batches(admin, &sites, entry).await {
                let outcomes = self.send_batch(admin, &clone, &source, &batch, scope).await;
                for (place, outcome) in outcomes {
                    match outcome {
                        Ok(()) => reached.push(place),
                        Err(error) => drop(failed.get_or_insert(error)),
                    }
                }
                if failed.is_some() {
                    // If the source failed, sites may have the new state unreported: then all of it is done
                    // again.
                    clone.status().await?;
                }
                mark(entry, &reached);
                // Entered at once: clients keep to the sites that have it.
                admin.replace_entry(entry, ReleaseType::NONE).await?;
            }
            Ok(())
        };
        let sent = sent.await;
        clone.end_after(sent).await?;
        let failed = failed.map(|error| {
            let name = &self.name;
            error.with_hint(format!(
                "the other sites have the new state; `andrew vos release {name}` brings it to this one later"
            ))
        });
        Ok((reached, failed))
    }

    /// Sites whose servers stage restores are updated all at once. Of others one stays on line while the rest
    /// is written.
    async fn batches(&self, admin: &Admin, sites: &[Site], entry: &Entry) -> Vec<Vec<Site>> {
        let mut staged = true;
        for site in sites {
            staged &= admin.is_ours(site.server).await;
        }
        let another_stays = entry.sites.iter().any(|s| s.flags.contains(SiteFlags::NEW_REPSITE));
        match sites.split_first() {
            Some((first, rest)) if !staged && !another_stays && !rest.is_empty() => {
                vec![vec![*first], rest.to_vec()]
            }
            _ => vec![sites.to_vec()],
        }
    }

    async fn send_batch(
        &self,
        admin: &Admin,
        clone: &Transaction,
        source: &VolumeInfo,
        sites: &[Site],
        scope: Scope,
    ) -> Vec<(ServerPartition, AdminResult)> {
        let opened = sites.iter().map(|site| async move {
            (ServerPartition::from(site), self.open_site(admin, site, source, scope).await)
        });
        let mut outcomes = Vec::new();
        let mut batches: BTreeMap<u32, Vec<ReceivingSite>> = BTreeMap::new();
        for (place, opened) in join_all(opened).await {
            match opened {
                Ok(open) => batches.entry(open.since.0).or_default().push(open),
                Err(error) => outcomes.push((place, Err(error))),
            }
        }
        for (since, open) in batches {
            let sent = self.send_to(admin, clone, UnixSeconds(since), &open).await;
            for (open, sent) in open.iter().zip(sent) {
                let shown = match sent {
                    Ok(()) => self.show(admin, &open.held).await,
                    Err(error) => Err(error),
                };
                outcomes.push((open.held.place, open.held.end_after(shown).await));
            }
        }
        outcomes
    }

    /// Opens the copy at a site, or creates one. Also gives the time since which it needs changes.
    async fn open_site(
        &self,
        admin: &Admin,
        site: &Site,
        source: &VolumeInfo,
        scope: Scope,
    ) -> AdminResult<ReceivingSite> {
        let place = ServerPartition::from(site);
        // A server of ours shows the old state until the new one is complete; others must not be read
        // meanwhile.
        let mode = if admin.is_ours(site.server).await { AttachFlags::BUSY } else { AttachFlags::OFFLINE };
        let attach = Attach { mode, break_others: true };
        if site.flags.contains(SiteFlags::DONT_USE) {
            admin.delete_volume(place, self.read_only, true).await?;
        }
        if let Some(held) = admin.take(place, self.read_only, attach).await? {
            let status = held.status().await;
            return match status {
                Ok(status) => Ok(ReceivingSite { held, since: self.since(&status, source, scope) }),
                Err(error) => held.end_after(Err(error)).await,
            };
        }
        let name = format!("{}{}", self.name, VolumeKind::ReadOnly.suffix());
        let held = admin.make(place, self.read_only, &name, VolumeKind::ReadOnly, self.volume).await?;
        held.set_flags(UNPUBLISHED).await?;
        admin.carry_placement_first(self.home.server, self.volume, &held).await?;
        Ok(ReceivingSite { held, since: UnixSeconds(0) })
    }

    /// `docs/protocol/volserver.md` "9. Traps", 9: the missing changes start at the copy's last change; the
    /// creation dates tell whether it is a copy of this volume at all.
    fn since(&self, copy: &HeaderStatus, source: &VolumeInfo, scope: Scope) -> UnixSeconds {
        let whole = self.force || scope != Scope::Everything;
        let other =
            source.creation_date > adjusted(copy.creation_date) || copy.update_date > source.update_date;
        if whole || other { UnixSeconds(0) } else { adjusted(copy.update_date) }
    }

    /// Sends to the sites whose transactions are still valid.
    async fn send_to(
        &self,
        admin: &Admin,
        clone: &Transaction,
        since: UnixSeconds,
        open: &[ReceivingSite],
    ) -> Vec<AdminResult> {
        let mut proven = Vec::new();
        for one in open {
            proven.push(one.held.prove("write to").await);
        }
        let standing = open.iter().zip(&proven).filter_map(|(one, proof)| proof.is_ok().then_some(one));
        let standing: Vec<&ReceivingSite> = standing.collect();
        let mut sent = self.send_to_proven(admin, clone, since, &standing).await.into_iter();
        proven.into_iter().map(|proof| proof.and_then(|()| sent.next().unwrap_or(Ok(())))).collect()
    }

    async fn send_to_proven(
        &self,
        admin: &Admin,
        clone: &Transaction,
        since: UnixSeconds,
        open: &[&ReceivingSite],
    ) -> Vec<AdminResult> {
        let name = format!("{}{}", self.name, VolumeKind::ReadOnly.suffix());
        let cookie = cookie(&name, VolumeKind::ReadOnly, self.volume);
        match open {
            [] => return Vec::new(),
            [one] => return vec![admin.forward_watched(clone, since, &one.held, cookie).await],
            _ => {}
        }
        if let Err(error) = clone.prove("send").await {
            return open.iter().map(|_| Err(error.clone())).collect();
        }
        let replicas = open.iter().map(|o| Replica { transaction: o.held.id, server: o.held.destination() });
        let request = ForwardMultiple {
            transaction: clone.id,
            from_date: since,
            replicas: BoundedVec::first_of(replicas),
            spare: 0,
            cookie,
        };
        let doing = |o: &ReceivingSite| format!("Could not send volume {} to {}", self.name, o.held.place);
        match clone.server().call(&request).await {
            Ok(reply) => {
                let result = |(o, code): (&&ReceivingSite, Option<&i32>)| match code {
                    Some(0) => Ok(()),
                    Some(code) => {
                        let error = CallError::Abort(AbortCode(*code));
                        Err(AdminError::call(doing(o), Some(o.held.place.server), error))
                    }
                    None => Err(AdminError::failed(doing(o), "the source said nothing about it")),
                };
                let codes = (0..open.len()).map(|index| reply.results.get(index));
                open.iter().zip(codes).map(result).collect()
            }
            Err(CallError::Abort(AbortCode::RXGEN_OPCODE)) => {
                // An older server sends to one at a time.
                let mut sent = Vec::new();
                for one in open {
                    sent.push(admin.forward_watched(clone, since, &one.held, cookie).await);
                }
                sent
            }
            Err(error) => {
                let failed = |o: &&ReceivingSite| {
                    Err(AdminError::call(doing(o), Some(self.home.server), error.clone()))
                };
                open.iter().map(failed).collect()
            }
        }
    }

    async fn show(&self, admin: &Admin, held: &Transaction) -> AdminResult {
        admin.carry_settings(self.home.server, self.volume, held).await?;
        let name = format!("{}{}", self.name, VolumeKind::ReadOnly.suffix());
        held.set_ids(&name, VolumeKind::ReadOnly, [self.volume, VolumeId(0), VolumeId(0)]).await?;
        held.set_flags(VolumeFlags(0)).await
    }
}

fn mark(entry: &mut Entry, reached: &[ServerPartition]) {
    entry.sites.iter_mut_sites(|site| {
        if site.flags.contains(SiteFlags::RO_VOLUME) && reached.contains(&ServerPartition::from(&*site)) {
            site.flags = site.flags.with(SiteFlags::NEW_REPSITE).without(SiteFlags::DONT_USE);
        }
    });
    if !reached.is_empty() {
        entry.flags = entry.flags.with(EntryFlags::RO_EXISTS);
    }
}
