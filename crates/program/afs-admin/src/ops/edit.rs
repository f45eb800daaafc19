//! Changes of one location entry, without any volume: `vos addsite`, `remsite`, `changeloc`, and the locks
//! themselves.

use afs_wire::ids::{KindNumber, VolumeId};
use afs_wire::vl::{Entry, EntryFlags, LockOperation, ReleaseType, SITES_MAX, SetLock, SiteFlags};
use afs_wire::xdr::BoundedVec;
use serde::{Deserialize, Serialize};

use super::Outcome;
use crate::error::{AdminError, AdminResult};
use crate::journal::Job;
use crate::{Admin, ServerPartition};

/// See [`Plan`](crate::plan::Plan): an entry is locked, and changed and unlocked with one write.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EditPlan {
    #[serde(with = "crate::wire_numbers::volume")]
    pub(crate) volume: VolumeId,
    pub(crate) name: String,
    pub(crate) step: Step,
    word: String,
}

/// The one step: the entry is locked, changed and unlocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    /// The entry is locked.
    Lock,
}

impl Admin {
    /// Adds the site of a future read-only copy, which the next release brings.
    ///
    /// # Errors
    /// No such volume or site, a site that the volume has already, another one on the same server, or no room
    /// in the entry.
    pub async fn add_site(&self, volume: &str, place: ServerPartition, valid: bool) -> AdminResult {
        let doing = format!("Could not add a site to {volume}");
        self.check_place(&doing, place).await?;
        self.edit("addsite", volume, |mut entry| {
            let mut sites = entry.sites.to_vec();
            if sites.iter().any(|s| s.flags.contains(SiteFlags::RO_VOLUME) && s.server == place.server) {
                return Err(AdminError::refused(
                    &doing,
                    format!("it has a read-only site on {} already", place.server),
                ));
            }
            if sites.len() >= SITES_MAX {
                return Err(AdminError::refused(
                    &doing,
                    format!("it has {SITES_MAX} sites, and there can be no more"),
                ));
            }
            let waits = if valid { SiteFlags::NONE } else { SiteFlags::DONT_USE };
            sites.push(place.site(SiteFlags::RO_VOLUME.with(waits)));
            entry.sites = BoundedVec::first_of(sites);
            Ok(Some(entry))
        })
        .await
    }

    /// Removes a read-only site from the entry; an existing copy stays.
    ///
    /// # Errors
    /// No such volume or site.
    pub async fn remove_site(&self, volume: &str, place: ServerPartition) -> AdminResult {
        let doing = format!("Could not remove a site of {volume}");
        self.edit("remsite", volume, |mut entry| {
            let is = |s: &afs_wire::vl::Site| {
                s.flags.contains(SiteFlags::RO_VOLUME) && ServerPartition::from(s) == place
            };
            if !entry.sites.iter().any(is) {
                return Err(AdminError::refused(&doing, format!("it has no read-only site on {place}")));
            }
            let sites: Vec<_> = entry.sites.iter().filter(|s| !is(s)).copied().collect();
            if !sites.iter().any(|s| s.flags.contains(SiteFlags::RO_VOLUME)) {
                entry.flags = entry.flags.without(EntryFlags::RO_EXISTS);
            }
            entry.sites = BoundedVec::first_of(sites);
            Ok(Some(entry).filter(|e| !e.sites.is_empty()))
        })
        .await
    }

    /// Sets the site of the read-write volume in the entry; no volume is touched.
    ///
    /// # Errors
    /// No such volume or site, or no read-write site.
    pub async fn change_location(&self, volume: &str, place: ServerPartition) -> AdminResult {
        let doing = format!("Could not change the place of {volume}");
        self.check_place(&doing, place).await?;
        self.edit("changeloc", volume, |mut entry| {
            let mut sites = entry.sites.to_vec();
            let site = sites.iter_mut().find(|s| s.flags.contains(SiteFlags::RW_VOLUME));
            let site = site.ok_or_else(|| AdminError::refused(&doing, "it has no read-write site"))?;
            (site.server, site.partition) = (place.server, place.partition);
            entry.sites = BoundedVec::first_of(sites);
            Ok(Some(entry))
        })
        .await
    }

    /// Locks an entry until it is unlocked.
    ///
    /// # Errors
    /// No such volume, or it is locked.
    pub async fn lock(&self, volume: &str) -> AdminResult {
        let group = self.group(volume).await?;
        let request =
            SetLock { volume: first(&group.entry), kind: KindNumber::ANY, operation: LockOperation::DELETE };
        let locked = self.locate(&request).await;
        locked.map_err(|e| AdminError::call(format!("Could not lock {volume}"), None, e))
    }

    /// Unlocks an entry, whoever locked it.
    ///
    /// # Errors
    /// No such volume, or an operation on it whose holder lives.
    pub async fn unlock(&self, volume: &str) -> AdminResult {
        let group = self.group(volume).await?;
        let busy = self.operations().await?.into_iter().find(|r| r.draft.volume == group.id());
        if let Some(record) = busy {
            let draft = &record.draft;
            let why = format!("{} is at step {} of {}", draft.holder, draft.step, draft.word);
            let doing = format!("Could not unlock {volume}");
            return Err(AdminError::refused(doing, why).with_hint(if record.lapsed {
                format!("`andrew vos resume {volume}` ends it")
            } else {
                "wait until it is done".to_owned()
            }));
        }
        self.unlock_entry(first(&group.entry), &group.name()).await
    }

    /// Changes one entry under its lock. `change` returns the changed entry, or `None` to delete it.
    pub(crate) async fn edit(
        &self,
        word: &str,
        volume: &str,
        change: impl FnOnce(Entry) -> AdminResult<Option<Entry>>,
    ) -> AdminResult {
        let group = self.group(volume).await?;
        Self::check_unlocked(&group.entry)?;
        // An impossible change is refused before anything is locked.
        let plan = EditPlan {
            volume: first(&group.entry),
            name: group.name(),
            step: Step::Lock,
            word: word.to_owned(),
        };
        let job = Job::begin(self, &plan.clone().into()).await?;
        let edited = plan.run(self, change).await;
        match edited {
            Ok(()) => job.end().await,
            Err((false, error)) => {
                job.end().await?;
                Err(error)
            }
            Err((true, error)) if error.is_refusal() => {
                self.unlock_entry(plan.volume, &plan.name).await?;
                job.end().await?;
                Err(error)
            }
            Err((true, error)) => Err(self.give_up(plan.into(), job, error).await),
        }
    }
}

fn first(entry: &Entry) -> VolumeId {
    entry.ids.iter().copied().find(|id| id.0 != 0).unwrap_or_default()
}

impl EditPlan {
    pub(crate) fn word(&self) -> &'static str {
        match self.word.as_str() {
            "addsite" => "addsite",
            "remsite" => "remsite",
            "changeloc" => "changeloc",
            "check" => "check",
            _ => "edit",
        }
    }

    pub(crate) fn says(&self) -> String {
        format!("changing the VLDB entry of {}", self.name)
    }

    /// An error says whether the lock is this operation's.
    async fn run(
        &self,
        admin: &Admin,
        change: impl FnOnce(Entry) -> AdminResult<Option<Entry>>,
    ) -> Result<(), (bool, AdminError)> {
        let locked = admin.lock_entry(self.volume, &self.name, LockOperation::DELETE).await;
        let entry = locked.map_err(|error| (!error.is_refusal(), error))?;
        let before = entry.clone();
        match change(entry).map_err(|e| (true, e))? {
            Some(entry) => admin.replace_entry(&entry, ReleaseType::ALL).await,
            None => admin.delete_entry(&before).await,
        }
        .map_err(|e| (true, e))
    }

    /// Changing and unlocking are one write: if the entry is still locked, nothing was changed.
    pub(crate) async fn resume(self, admin: &Admin, job: Job) -> AdminResult<Outcome> {
        let entry = admin.entry(self.volume).await?;
        let locked = entry.is_some_and(|e| e.flags.intersects(EntryFlags::LOCK_OPERATIONS));
        if locked {
            admin.unlock_entry(self.volume, &self.name).await?;
        }
        // An unlocked entry was changed, or was not locked yet; the user sees which.
        job.end().await?;
        Ok(Outcome::Undone)
    }
}
