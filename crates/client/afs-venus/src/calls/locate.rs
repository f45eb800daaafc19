//! Location of volumes: queried before the first call, when a server reports that a volume is elsewhere, and when no
//! site replies.

use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, Instant};
use afs_wire::ids::{VolumeId, VolumeKind};

use crate::calls::{CallContext, Calls, Parts, WaitPolicy};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::CellIndex;
use crate::location::{Cell, Group, QueryEnv, Volume, volume_query};

/// Interval between checks of a volume's location that could not be completed.
const LOCATION_CHECK_PAUSE: Duration = Duration::from_secs(30);

impl Calls {
    /// Finds a volume by its number.
    pub async fn volume(&self, context: &CallContext, cell: CellIndex, id: VolumeId) -> Result<Arc<Volume>> {
        if let Some(volume) = self.parts.location.volumes().get(cell, id) {
            return Ok(volume);
        }
        let group = self.group(context, cell, &volume_query(id)).await?;
        let kind = group.kind_of(id).ok_or(missing())?;
        self.learn_volume(context, cell, &group, id, kind).await
    }

    /// Finds a volume of a group, with its servers.
    pub async fn learn_volume(
        &self,
        context: &CallContext,
        cell: CellIndex,
        group: &Arc<Group>,
        id: VolumeId,
        kind: VolumeKind,
    ) -> Result<Arc<Volume>> {
        if let Some(volume) = self.parts.location.volumes().get(cell, id) {
            return Ok(volume);
        }
        let sites = self.servers_of(context, cell, &group.sites_of(kind)).await?;
        self.measure(kind, &sites);
        let volumes = self.parts.location.volumes();
        let volume = volumes.learn(cell, id, kind, group.clone(), sites, self.now());
        volumes.shrink(|cell, id| self.parts.promises.is_in_use(cell, id));
        Ok(volume)
    }

    /// Finds the volume group of a name (or decimal number); ENODEV if there is none. What is known of it longer than its term is
    /// asked for again, and used a while longer if no location server replies.
    pub async fn group(&self, context: &CallContext, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        let volumes = self.parts.location.volumes();
        let term = if is_number(name) { self.limits.location_max_age } else { self.limits.name_max_age };
        let known = volumes.group(cell, name);
        if let Some((group, asked)) = &known
            && self.now().saturating_since(*asked) <= term
        {
            return Ok(group.clone());
        }
        // Nobody waits long for what is known.
        let wait = if known.is_some() { WaitPolicy::NoWait } else { context.wait };
        let (now, recalls) = (self.now(), volumes.recalls());
        match (self.group_anew(&CallContext { wait, ..*context }, cell, name).await, known) {
            (Err(error), Some((group, _))) if error.kind == ErrorKind::ServerUnreachable => {
                let as_of = now.as_nanos().saturating_sub(term.as_nanos() as u64);
                let as_of = Instant::from_nanos(as_of) + LOCATION_CHECK_PAUSE;
                volumes.remember_group(cell, name, group.clone(), as_of, recalls);
                Ok(group)
            }
            (Err(error), None) if context.may_be_old && error.kind == ErrorKind::ServerUnreachable => {
                volumes.group_of_known(cell, name).ok_or(error)
            }
            (other, _) => other,
        }
    }

    /// The same, ignoring the cache.
    pub async fn group_anew(&self, context: &CallContext, cell: CellIndex, name: &str) -> Result<Arc<Group>> {
        self.query_group(context, cell, name).await?.ok_or(missing())
    }

    async fn query_group(
        &self,
        context: &CallContext,
        cell: CellIndex,
        name: &str,
    ) -> Result<Option<Arc<Group>>> {
        let config = self.cell_at(cell)?;
        let (query_env, now) = (self.query_env(context), self.now());
        let recalls = self.parts.location.volumes().recalls();
        let group =
            self.query_with_wait(context, &config, || config.group(&query_env, name)).await?.map(Arc::new);
        if let Some(group) = &group {
            self.parts.location.volumes().remember_group(cell, name, group.clone(), now, recalls);
        }
        Ok(group)
    }

    /// Queries the location of a volume again. Returns true if it has changed.
    pub async fn relocate(&self, context: &CallContext, volume: &Arc<Volume>) -> Result<bool> {
        let (group, sites) = match self.query_group(context, volume.cell, &volume_query(volume.id)).await? {
            Some(group) => {
                let sites = self.servers_of(context, volume.cell, &group.sites_of(volume.kind)).await?;
                (group, sites)
            }
            None => (volume.group(), Vec::new()),
        };
        self.measure(volume.kind, &sites);
        let changed = volume.relocate(group, sites, self.now());
        if changed {
            tracing::info!(volume = %volume.id, "the volume is at other servers than before");
            self.reachable_again.notify_waiters();
            self.parts.promises.volume_moved(volume);
        }
        Ok(changed)
    }

    /// [`Calls::relocate`] for a call in progress. If no site replied, the location service may be unreachable too, and
    /// the query has a time limit: the process has waited for the site already.
    pub(super) async fn relocate_within(
        &self,
        context: &CallContext,
        volume: &Arc<Volume>,
        silent: bool,
    ) -> bool {
        let relocation = self.relocate(context, volume);
        if !silent {
            return relocation.await.unwrap_or(false);
        }
        let asked = self.parts.env.timeout(self.limits.hedge_probe_timeout * 2, relocation).await;
        matches!(asked, Ok(Ok(true)))
    }

    /// Before a call: queries the location of a volume whose promises a server has broken as a whole, as it does after
    /// a move or a release. Limited in time; without a reply the call goes to the known site.
    pub(super) async fn check_location(&self, context: &CallContext, volume: &Arc<Volume>) {
        let now = self.now();
        if !volume.claim_location_check(now, now + LOCATION_CHECK_PAUSE) {
            return;
        }
        let relocation =
            self.parts.env.timeout(self.limits.hedge_probe_timeout * 2, self.relocate(context, volume));
        if !matches!(relocation.await, Ok(Ok(_))) {
            tracing::debug!(volume = %volume.id, "it cannot be told whether the volume is still where it was");
        }
    }

    pub(super) fn query_env(&self, context: &CallContext) -> QueryEnv<'_> {
        let Parts { env, counters, .. } = &self.parts;
        let is_hasty = context.wait == WaitPolicy::Glance;
        QueryEnv { env, counters, hedge_timeout: self.limits.hedge_probe_timeout, is_hasty }
    }

    pub(super) fn cell_at(&self, cell: CellIndex) -> Result<Arc<Cell>> {
        self.parts.location.cell(cell).ok_or(missing())
    }
}

/// Whether a name is the number of a volume, which leads to no other one.
fn is_number(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

fn missing() -> VenusError {
    VenusError::new(ErrorKind::NoVolume, "volume")
}
